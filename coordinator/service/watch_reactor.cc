#include "coordinator/service/watch_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::service {
namespace {

// Events a watcher holds at most.
constexpr uint32_t kBatch = 8;

}  // namespace

WatchReactor::WatchReactor(store::Store& store, EventHub& hub, WorkPool& pool,
                           std::string analysis_id, uint64_t after_sequence)
    : store_(store),
      hub_(hub),
      pool_(pool),
      analysis_id_(std::move(analysis_id)),
      cursor_(after_sequence) {}

void WatchReactor::Start() {
  // Before the first look at the store: no event can fall between.
  hub_.Watch(analysis_id_, weak_from_this());
  Pump();
}

void WatchReactor::Refuse(const absl::Status& status) { End(status); }

void WatchReactor::Wake() {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    if (busy_) {
      again_ = true;
      return;
    }
    busy_ = true;
  }
  PostPump();
}

void WatchReactor::PostPump() {
  if (pool_.Post([self = shared_from_this()] { self->Pump(); })) return;
  End(MakeError(absl::StatusCode::kResourceExhausted, "TOO_BUSY",
                absl::StrCat("the coordinator is too busy; watch again after sequence ", cursor_)));
}

void WatchReactor::Pump() {
  while (true) {
    const absl::StatusOr<bool> more = ReadMore();
    if (!more.ok()) return End(more.status());
    if (!*more) return End(absl::OkStatus());
    if (!buffer_.empty()) return WriteFront();
    if (Cancelled()) return End(absl::CancelledError("the client has gone"));
    if (hub_.closed()) {
      return End(MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                           absl::StrCat("the coordinator is shutting down; watch again after "
                                        "sequence ",
                                        cursor_)));
    }
    if (Sleep()) return;
  }
}

absl::StatusOr<bool> WatchReactor::ReadMore() {
  // The analysis first: when it had ended by then, its last event is in the store.
  ASSIGN_OR_RETURN(const v1::Analysis analysis, store_.Get(analysis_id_));
  ASSIGN_OR_RETURN(std::vector<v1::AnalysisEvent> events,
                   store_.EventsAfter(analysis_id_, cursor_, kBatch));
  if (events.empty()) return !store::HasEnded(analysis.state());
  for (v1::AnalysisEvent& event : events) buffer_.push_back(std::move(event));
  return true;
}

void WatchReactor::WriteFront() {
  if (Cancelled()) return End(absl::CancelledError("the client has gone"));
  *response_.mutable_event() = std::move(buffer_.front());
  buffer_.pop_front();
  cursor_ = response_.event().sequence();
  // A cancellation from here on makes the write fail.
  StartWrite(&response_);
}

bool WatchReactor::Cancelled() {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

bool WatchReactor::Sleep() {
  absl::MutexLock lock(&mutex_);
  if (again_ || cancelled_) {
    again_ = false;
    return false;
  }
  busy_ = false;
  return true;
}

void WatchReactor::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the client has gone"));
  if (!buffer_.empty()) return WriteFront();
  PostPump();
}

void WatchReactor::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (busy_) return;  // who is busy ends the stream
    busy_ = true;
  }
  End(absl::CancelledError("the client has gone"));
}

void WatchReactor::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
  }
  Finish(ToGrpcStatus(status));
}

}  // namespace solward::service
