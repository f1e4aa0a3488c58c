// EventHub: tells watchers that an analysis has a new event. It carries no
// event: watchers read the store, so that a slow one holds no memory here.
#ifndef SOLWARD_COORDINATOR_SERVICE_EVENT_HUB_H_
#define SOLWARD_COORDINATOR_SERVICE_EVENT_HUB_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace solward::service {

class EventWatcher {
 public:
  virtual ~EventWatcher() = default;
  // There is something new, or the hub has closed. Must not block.
  virtual void Wake() = 0;
};

// Thread-safe. Watchers that are gone are forgotten by themselves.
class EventHub {
 public:
  void Watch(const std::string& analysis_id, std::weak_ptr<EventWatcher> watcher);
  void Notify(const std::string& analysis_id);
  // No more events will come from this process; wakes every watcher.
  void Close();
  bool closed() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::vector<std::weak_ptr<EventWatcher>>> watchers_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_EVENT_HUB_H_
