// WatchReactor: one WatchAnalysis stream. Events come from the store a few at a
// time, when the client has taken those before.
#ifndef SOLWARD_COORDINATOR_SERVICE_WATCH_REACTOR_H_
#define SOLWARD_COORDINATOR_SERVICE_WATCH_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/service/event_hub.h"
#include "coordinator/service/work_pool.h"
#include "coordinator/store/store.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// Owns itself from Open until the call is done. The store, hub and pool outlive it.
class WatchReactor : public grpc::ServerWriteReactor<v1::WatchAnalysisResponse>,
                     public EventWatcher,
                     public std::enable_shared_from_this<WatchReactor> {
 public:
  WatchReactor(store::Store& store, EventHub& hub, WorkPool& pool, std::string analysis_id,
               uint64_t after_sequence);

  // Call first, once, before the call can end.
  void Open() { keep_ = shared_from_this(); }
  // Then one of these, once, from any thread: send the events, or end the
  // stream with an error.
  void Start();
  void Refuse(const absl::Status& status);

  void Wake() override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { keep_.reset(); }

 private:
  void PostPump();
  // Sends the next event, ends the stream, or waits for a wake.
  void Pump();
  absl::StatusOr<bool> ReadMore();  // false: the last event was sent
  void WriteFront();
  bool Cancelled();
  void End(const absl::Status& status);
  // True: went to sleep. False: there is something to do first.
  bool Sleep();

  store::Store& store_;
  EventHub& hub_;
  WorkPool& pool_;
  const std::string analysis_id_;
  // Touched by whoever holds `busy_`: never by two at once.
  uint64_t cursor_;
  std::deque<v1::AnalysisEvent> buffer_;
  v1::WatchAnalysisResponse response_;

  absl::Mutex mutex_;
  // A pump or a write is under way; first whoever is to call Start or Refuse.
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool again_ ABSL_GUARDED_BY(mutex_) = false;  // woken while busy
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
  std::shared_ptr<WatchReactor> keep_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_WATCH_REACTOR_H_
