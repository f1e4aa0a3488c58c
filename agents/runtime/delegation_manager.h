// Accepts delegations, runs a few at a time, remembers how they ended.
//
// A delegation belongs to (caller, key) and is bound to the hash of its
// request. It runs on when its caller's stream breaks: only CancelDelegation,
// its deadline or the end of the process stop it. A result, and a cancellation,
// are final: a repeat gets them, also after a restart. Any other error is no
// result, and a repeat runs again.
#ifndef SOLWARD_AGENTS_RUNTIME_DELEGATION_MANAGER_H_
#define SOLWARD_AGENTS_RUNTIME_DELEGATION_MANAGER_H_

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agents/runtime/delegation.h"
#include "agents/runtime/delegation_journal.h"
#include "agents/runtime/specialist.h"
#include "agents/runtime/workspace.h"

namespace solward::runtime {

struct DelegationLimits {
  uint32_t concurrency = 2;     // running at a time
  uint32_t queue = 16;          // waiting
  size_t ended_in_memory = 64;  // the others are read from disk
  uint64_t ended_bytes_in_memory = 128ull << 20;
  size_t ended_on_disk = 4096;
  absl::Duration longest = absl::Hours(2);  // also without a deadline of the caller
  uint64_t max_result_bytes = 60ull << 20;  // below what a client receives
};

// Thread-safe.
class DelegationManager {
 public:
  // `specialist` and `workspace` must outlive it.
  static absl::StatusOr<std::unique_ptr<DelegationManager>> Create(Specialist& specialist,
                                                                   Workspace& workspace,
                                                                   const DelegationLimits& limits);
  // As Shutdown.
  ~DelegationManager();

  // The running, ended or new delegation of this key. ALREADY_EXISTS when the
  // key names another request, RESOURCE_EXHAUSTED when the queue is full,
  // UNAVAILABLE when shutting down.
  absl::StatusOr<std::shared_ptr<Delegation>> Submit(const std::string& caller,
                                                     const v1::DelegationRequest& request,
                                                     absl::Time deadline);

  // `owner`: the caller may cancel what others started. NOT_FOUND,
  // PERMISSION_DENIED.
  absl::StatusOr<v1::CancelOutcome> Cancel(const std::string& caller, bool owner,
                                           const v1::CancelDelegationRequest& request);

  uint32_t running() const;  // running and waiting
  const DelegationLimits& limits() const { return limits_; }

  // Stops everything (UNAVAILABLE for who waits) and waits for the specialist
  // to return. Idempotent.
  void Shutdown();

 private:
  using Slot = std::pair<std::string, std::string>;  // caller, key

  DelegationManager(Specialist& specialist, Workspace& workspace, const DelegationLimits& limits,
                    std::unique_ptr<DelegationJournal> journal);

  absl::StatusOr<std::shared_ptr<Delegation>> Known(const Slot& slot, const std::string& sha256,
                                                    absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Delegation>> Enqueue(std::shared_ptr<Delegation> delegation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Delegation> FindActive(const v1::CancelDelegationRequest& request,
                                         const std::string& caller) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remember(std::shared_ptr<Delegation> ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void WorkLoop();
  void RunOne(const std::shared_ptr<Delegation>& delegation);
  // Journals, announces and files the end of an active delegation.
  void Finish(const std::shared_ptr<Delegation>& delegation, DelegationEnd end);
  void DeadlineLoop();
  void FinishIfQueued(const std::shared_ptr<Delegation>& delegation);

  Specialist& specialist_;
  Workspace& workspace_;
  const DelegationLimits limits_;
  const std::unique_ptr<DelegationJournal> journal_;

  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Slot, std::shared_ptr<Delegation>> active_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Delegation>> queue_ ABSL_GUARDED_BY(mutex_);
  // Ended, most recently used first.
  std::list<std::shared_ptr<Delegation>> ended_ ABSL_GUARDED_BY(mutex_);
  uint64_t ended_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Slot, std::list<std::shared_ptr<Delegation>>::iterator> ended_index_
      ABSL_GUARDED_BY(mutex_);

  absl::Mutex shutdown_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(shutdown_mutex_);
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_DELEGATION_MANAGER_H_
