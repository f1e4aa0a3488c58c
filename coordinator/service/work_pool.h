// WorkPool: a few threads for work that may wait on the disk or on another
// server, so that gRPC's own threads never do.
#ifndef SOLWARD_COORDINATOR_SERVICE_WORK_POOL_H_
#define SOLWARD_COORDINATOR_SERVICE_WORK_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace solward::service {

// Thread-safe.
class WorkPool {
 public:
  WorkPool(int threads, size_t max_queued);
  // Runs what is queued, then joins.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // False when the queue is full or the pool is ending; `work` is then not run.
  [[nodiscard]] bool Post(std::function<void()> work);

 private:
  void Run();

  const size_t max_queued_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_WORK_POOL_H_
