// A few threads and a bounded queue of jobs.
#ifndef SOLWARD_AGENTS_RUNTIME_WORK_POOL_H_
#define SOLWARD_AGENTS_RUNTIME_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace solward::runtime {

// Thread-safe.
class WorkPool {
 public:
  WorkPool(size_t threads, size_t queue);
  // As Close.
  ~WorkPool();

  // False when the queue is full or the pool closed; the job is not run then.
  bool Submit(std::function<void()> job);
  // Runs what is queued, then ends the threads. Idempotent.
  void Close();

 private:
  void Loop();

  const size_t capacity_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex close_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(close_mutex_);
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_WORK_POOL_H_
