#include "agents/runtime/work_pool.h"

#include <utility>

namespace solward::runtime {

WorkPool::WorkPool(size_t threads, size_t queue) : capacity_(queue) {
  absl::MutexLock lock(&close_mutex_);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

WorkPool::~WorkPool() { Close(); }

bool WorkPool::Submit(std::function<void()> job) {
  absl::MutexLock lock(&mutex_);
  if (closed_ || jobs_.size() >= capacity_) return false;
  jobs_.push_back(std::move(job));
  changed_.Signal();
  return true;
}

void WorkPool::Loop() {
  while (true) {
    std::function<void()> job;
    {
      absl::MutexLock lock(&mutex_);
      while (jobs_.empty() && !closed_) changed_.Wait(&mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

void WorkPool::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
  }
  absl::MutexLock lock(&close_mutex_);
  threads_.clear();
}

}  // namespace solward::runtime
