#include "coordinator/service/event_hub.h"

#include <utility>

namespace solward::service {

void EventHub::Watch(const std::string& analysis_id, std::weak_ptr<EventWatcher> watcher) {
  absl::MutexLock lock(&mutex_);
  auto& watchers = watchers_[analysis_id];
  std::erase_if(watchers, [](const auto& known) { return known.expired(); });
  watchers.push_back(std::move(watcher));
}

void EventHub::Notify(const std::string& analysis_id) {
  std::vector<std::shared_ptr<EventWatcher>> awake;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = watchers_.find(analysis_id);
    if (it == watchers_.end()) return;
    std::erase_if(it->second, [&](const auto& known) {
      auto watcher = known.lock();
      if (watcher == nullptr) return true;
      awake.push_back(std::move(watcher));
      return false;
    });
    if (it->second.empty()) watchers_.erase(it);
  }
  for (const auto& watcher : awake) watcher->Wake();
}

void EventHub::Close() {
  std::vector<std::shared_ptr<EventWatcher>> awake;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (const auto& [id, watchers] : watchers_) {
      for (const auto& known : watchers) {
        if (auto watcher = known.lock()) awake.push_back(std::move(watcher));
      }
    }
    watchers_.clear();
  }
  for (const auto& watcher : awake) watcher->Wake();
}

bool EventHub::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

}  // namespace solward::service
