#include "agents/runtime/delegation.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::runtime {
namespace {

// What a stream that attaches late still sees.
constexpr size_t kProgressKept = 64;
constexpr size_t kMaxProgressBytes = 4 << 10;

}  // namespace

Delegation::Delegation(DelegationIdentity identity, v1::DelegationRequest request,
                       absl::Time deadline)
    : identity_(std::move(identity)), request_(std::move(request)), deadline_(deadline) {}

Delegation::Delegation(DelegationIdentity identity, DelegationEnd end)
    : identity_(std::move(identity)),
      deadline_(absl::InfiniteFuture()),
      end_(std::make_shared<const DelegationEnd>(std::move(end))) {}

std::vector<std::shared_ptr<DelegationWatcher>> Delegation::Watchers() {
  std::vector<std::shared_ptr<DelegationWatcher>> live;
  std::erase_if(watchers_, [&](const std::weak_ptr<DelegationWatcher>& watcher) {
    auto locked = watcher.lock();
    if (locked == nullptr) return true;
    live.push_back(std::move(locked));
    return false;
  });
  return live;
}

void Delegation::Report(v1::DelegationPhase phase, const std::string& message, double fraction) {
  v1::DelegationProgress progress;
  *progress.mutable_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(absl::Now()));
  progress.set_phase(phase);
  progress.set_message(Truncate(CleanUtf8(message), kMaxProgressBytes));
  progress.set_fraction(std::isfinite(fraction) ? std::min(fraction, 1.0) : -1);
  std::vector<std::shared_ptr<DelegationWatcher>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    if (end_ != nullptr) return;
    progress_.emplace_back(++last_sequence_, std::move(progress));
    if (progress_.size() > kProgressKept) progress_.pop_front();
    watchers = Watchers();
  }
  for (const auto& watcher : watchers) watcher->OnChange();
}

DelegationEnd Delegation::Conclude(absl::StatusOr<v1::DelegationResult> outcome) const {
  DelegationEnd end;
  end.status = outcome.status();
  if (outcome.ok()) {
    end.response.set_delegation_id(identity_.id);
    *end.response.mutable_result() = *std::move(outcome);
    return end;
  }
  absl::MutexLock lock(&mutex_);
  if (absl::IsCancelled(end.status) && !stop_reason_.ok()) end.status = stop_reason_;
  return end;
}

void Delegation::End(absl::StatusOr<v1::DelegationResult> outcome) {
  End(Conclude(std::move(outcome)));
}

void Delegation::End(DelegationEnd end) {
  std::vector<std::shared_ptr<DelegationWatcher>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    if (end_ != nullptr) return;
    end_ = std::make_shared<const DelegationEnd>(std::move(end));
    watchers = Watchers();
    watchers_.clear();
  }
  for (const auto& watcher : watchers) watcher->OnChange();
}

void Delegation::Stop(absl::Status why) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_ != nullptr || !stop_reason_.ok()) return;
    stop_reason_ = std::move(why);
  }
  stop_.request_stop();
}

v1::CancelOutcome Delegation::Cancel() {
  {
    absl::MutexLock lock(&mutex_);
    if (end_ != nullptr) {
      return absl::IsCancelled(end_->status) ? v1::CANCEL_OUTCOME_ALREADY_CANCELLED
                                             : v1::CANCEL_OUTCOME_ALREADY_ENDED;
    }
    if (absl::IsCancelled(stop_reason_)) return v1::CANCEL_OUTCOME_ALREADY_CANCELLED;
    stop_reason_ = MakeError(absl::StatusCode::kCancelled, "DELEGATION_CANCELLED",
                             "the delegation was cancelled by its caller");
  }
  stop_.request_stop();
  return v1::CANCEL_OUTCOME_CANCELLED;
}

absl::Time Delegation::deadline() const {
  absl::MutexLock lock(&mutex_);
  return deadline_;
}

void Delegation::ExtendDeadline(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = std::max(deadline_, deadline);
}

void Delegation::Watch(std::weak_ptr<DelegationWatcher> watcher) {
  absl::MutexLock lock(&mutex_);
  if (end_ == nullptr) watchers_.push_back(std::move(watcher));
}

bool Delegation::ended() const {
  absl::MutexLock lock(&mutex_);
  return end_ != nullptr;
}

std::shared_ptr<const DelegationEnd> Delegation::end() const {
  absl::MutexLock lock(&mutex_);
  return end_;
}

std::optional<v1::DelegationProgress> Delegation::NextProgress(uint64_t& sequence) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [number, progress] : progress_) {
    if (number <= sequence) continue;
    sequence = number;
    return progress;
  }
  return std::nullopt;
}

}  // namespace solward::runtime
