// One delegation from its acceptance to its end, watched by any number of
// callers' streams.
#ifndef SOLWARD_AGENTS_RUNTIME_DELEGATION_H_
#define SOLWARD_AGENTS_RUNTIME_DELEGATION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "solward/v1/specialist.pb.h"

namespace solward::runtime {

// Told that a delegation has something new. Called without locks held.
class DelegationWatcher {
 public:
  virtual ~DelegationWatcher() = default;
  virtual void OnChange() = 0;
};

// How a delegation ended: an error, or the response that carries the result.
struct DelegationEnd {
  absl::Status status;
  v1::DelegateResponse response;
};

struct DelegationIdentity {
  std::string id;
  std::string caller;  // "uid:1000", ...
  std::string key;
  std::string request_sha256;  // of the deterministic serialization, key left out
};

// Thread-safe.
class Delegation {
 public:
  Delegation(DelegationIdentity identity, v1::DelegationRequest request, absl::Time deadline);
  // One that ended in an earlier life of the process.
  Delegation(DelegationIdentity identity, DelegationEnd end);

  const DelegationIdentity& identity() const { return identity_; }
  const v1::DelegationRequest& request() const { return request_; }

  // --- Running ---
  std::stop_token stop_token() const { return stop_.get_token(); }
  void Report(v1::DelegationPhase phase, const std::string& message, double fraction);
  // Ends it; only the first call counts. What the stop was for decides over a
  // CANCELLED of the specialist.
  void End(absl::StatusOr<v1::DelegationResult> outcome);
  // How it is about to end once `outcome` is known; nothing changes.
  DelegationEnd Conclude(absl::StatusOr<v1::DelegationResult> outcome) const;
  void End(DelegationEnd end);

  // --- Stopping ---
  // What Conclude makes of a stop: the first reason holds.
  void Stop(absl::Status why);
  v1::CancelOutcome Cancel();
  absl::Time deadline() const;
  // A caller that attaches with a later deadline keeps it running longer.
  void ExtendDeadline(absl::Time deadline);

  // --- Watching ---
  void Watch(std::weak_ptr<DelegationWatcher> watcher);
  bool ended() const;
  std::shared_ptr<const DelegationEnd> end() const;
  // The next progress after `sequence` (then moved on), oldest first. Progress
  // that a slow stream missed is gone: only the newest counts.
  std::optional<v1::DelegationProgress> NextProgress(uint64_t& sequence) const;

 private:
  std::vector<std::shared_ptr<DelegationWatcher>> Watchers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DelegationIdentity identity_;
  const v1::DelegationRequest request_;
  std::stop_source stop_;
  mutable absl::Mutex mutex_;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_);
  absl::Status stop_reason_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<uint64_t, v1::DelegationProgress>> progress_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const DelegationEnd> end_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<DelegationWatcher>> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_DELEGATION_H_
