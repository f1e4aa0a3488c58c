#include "agents/runtime/delegation_manager.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/id.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"

namespace solward::runtime {
namespace {

// The same request has the same hash in every process of this version.
std::string HashOf(const v1::DelegationRequest& request) {
  v1::DelegationRequest without_key = request;
  without_key.clear_key();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    without_key.SerializeToCodedStream(&coded);
  }
  return Sha256Hex(bytes);
}

// A result, and the caller's own cancellation; other errors may pass.
bool IsFinal(const absl::Status& status) { return status.ok() || absl::IsCancelled(status); }

absl::Status KeyTaken(const std::string& key) {
  return MakeError(absl::StatusCode::kAlreadyExists, "KEY_NAMES_ANOTHER_REQUEST",
                   absl::StrCat("key '", key,
                                "' was used for another request; repeat that one "
                                "unchanged or choose another key"));
}

absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                   "the specialist is shutting down; ask again later");
}

absl::Status DeadlinePassed() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "DELEGATION_DEADLINE",
                   "the delegation's deadline passed before it had a result; ask again with a "
                   "longer one");
}

// What an ended delegation holds in memory, about. Constant once it has ended.
uint64_t SizeOf(const Delegation& ended) {
  return ended.request().ByteSizeLong() + ended.end()->response.ByteSizeLong();
}

// A library below a specialist may throw; that ends the delegation, not the process.
absl::StatusOr<v1::DelegationResult> RunGuarded(Specialist& specialist,
                                                const v1::DelegationRequest& request,
                                                DelegationContext& context) {
  try {
    return specialist.Run(request, context);
  } catch (const std::exception& error) {
    return MakeError(absl::StatusCode::kInternal, "SPECIALIST_FAILED",
                     absl::StrCat("the specialist failed: ", error.what()));
  }
}

}  // namespace

DelegationManager::DelegationManager(Specialist& specialist, Workspace& workspace,
                                     const DelegationLimits& limits,
                                     std::unique_ptr<DelegationJournal> journal)
    : specialist_(specialist),
      workspace_(workspace),
      limits_(limits),
      journal_(std::move(journal)) {}

absl::StatusOr<std::unique_ptr<DelegationManager>> DelegationManager::Create(
    Specialist& specialist, Workspace& workspace, const DelegationLimits& limits) {
  ASSIGN_OR_RETURN(const std::string folder, workspace.PrivateFolder("delegations"));
  ASSIGN_OR_RETURN(auto journal, DelegationJournal::Open(folder, limits.ended_on_disk));
  std::unique_ptr<DelegationManager> manager(
      new DelegationManager(specialist, workspace, limits, std::move(journal)));
  absl::MutexLock lock(&manager->shutdown_mutex_);
  for (uint32_t i = 0; i < std::max(1u, limits.concurrency); ++i) {
    manager->threads_.emplace_back([m = manager.get()] { m->WorkLoop(); });
  }
  manager->threads_.emplace_back([m = manager.get()] { m->DeadlineLoop(); });
  return manager;
}

DelegationManager::~DelegationManager() { Shutdown(); }

// --- Accepting -------------------------------------------------------------

absl::StatusOr<std::shared_ptr<Delegation>> DelegationManager::Known(const Slot& slot,
                                                                     const std::string& sha256,
                                                                     absl::Time deadline) {
  std::shared_ptr<Delegation> found;
  if (const auto active = active_.find(slot); active != active_.end()) {
    found = active->second;
  } else if (const auto ended = ended_index_.find(slot); ended != ended_index_.end()) {
    ended_.splice(ended_.begin(), ended_, ended->second);
    found = *ended->second;
  }
  if (found == nullptr) return nullptr;
  if (found->identity().request_sha256 != sha256) return KeyTaken(slot.second);
  const auto end = found->end();
  if (end == nullptr) {
    found->ExtendDeadline(deadline);
  } else if (!IsFinal(end->status) && active_.count(slot) == 0) {
    return nullptr;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<Delegation>> DelegationManager::Submit(
    const std::string& caller, const v1::DelegationRequest& request, absl::Time deadline) {
  deadline = std::min(deadline, absl::Now() + limits_.longest);
  const Slot slot(caller, request.key());
  const std::string sha256 = HashOf(request);
  {
    absl::MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(std::shared_ptr<Delegation> known, Known(slot, sha256, deadline));
    if (known != nullptr) return known;
  }
  // Reading a record takes a while: without the lock, then look again.
  std::shared_ptr<Delegation> recorded = journal_->Read(slot.first, slot.second);
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(std::shared_ptr<Delegation> known, Known(slot, sha256, deadline));
  if (known != nullptr) return known;
  if (recorded != nullptr) {
    Remember(recorded);
    if (recorded->identity().request_sha256 != sha256) return KeyTaken(slot.second);
    return recorded;
  }
  return Enqueue(std::make_shared<Delegation>(
      DelegationIdentity{NewId("delegation"), caller, request.key(), sha256}, request, deadline));
}

absl::StatusOr<std::shared_ptr<Delegation>> DelegationManager::Enqueue(
    std::shared_ptr<Delegation> delegation) {
  if (shutting_down_) return ShuttingDown();
  if (active_.size() >= size_t{limits_.concurrency} + limits_.queue) {
    return MakeError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL",
                     absl::StrCat(limits_.concurrency, " delegations run and ", limits_.queue,
                                  " wait, which is all this specialist takes; ask again later"));
  }
  active_[Slot(delegation->identity().caller, delegation->identity().key)] = delegation;
  // The first message of the stream: it tells the caller the delegation's id.
  delegation->Report(v1::DELEGATION_PHASE_QUEUED, "accepted", -1);
  queue_.push_back(delegation);
  changed_.SignalAll();
  return delegation;
}

// --- Running ---------------------------------------------------------------

void DelegationManager::WorkLoop() {
  while (true) {
    std::shared_ptr<Delegation> next;
    {
      absl::MutexLock lock(&mutex_);
      while (queue_.empty() && !shutting_down_) changed_.Wait(&mutex_);
      if (shutting_down_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    RunOne(next);
  }
}

void DelegationManager::RunOne(const std::shared_ptr<Delegation>& delegation) {
  const absl::Time start = absl::Now();
  absl::StatusOr<v1::DelegationResult> outcome = absl::CancelledError("stopped before it ran");
  if (!delegation->stop_token().stop_requested()) {
    DelegationContext context{
        workspace_,
        [delegation](v1::DelegationPhase phase, const std::string& message, double fraction) {
          delegation->Report(phase, message, fraction);
        },
        delegation->stop_token(), delegation->deadline()};
    outcome = RunGuarded(specialist_, delegation->request(), context);
  }
  if (outcome.ok()) {
    for (auto& artifact : *outcome->mutable_artifacts()) {
      if (artifact.specialist_instance().empty()) {
        artifact.set_specialist_instance(workspace_.instance_id());
      }
    }
    if (const uint64_t size = outcome->ByteSizeLong(); size > limits_.max_result_bytes) {
      outcome = MakeError(
          absl::StatusCode::kResourceExhausted, "RESULT_TOO_LARGE",
          absl::StrCat("the result has ", size, " bytes of at most ", limits_.max_result_bytes,
                       "; ask for fewer captures, kernels or steps"));
    }
  }
  DelegationEnd end = delegation->Conclude(std::move(outcome));
  Log(LogLevel::kInfo, "delegation ended",
      {{"id", delegation->identity().id},
       {"caller", delegation->identity().caller},
       {"status", absl::StatusCodeToString(end.status.code())},
       {"reason", ErrorReason(end.status)},
       {"duration", absl::FormatDuration(absl::Now() - start)}});
  Finish(delegation, std::move(end));
}

void DelegationManager::Finish(const std::shared_ptr<Delegation>& delegation, DelegationEnd end) {
  // On disk before anybody is told: what was told once is told again.
  if (IsFinal(end.status)) {
    if (absl::Status written = journal_->Write(delegation->identity(), end); !written.ok()) {
      Log(LogLevel::kWarning, "a result will not survive a restart",
          {{"id", delegation->identity().id}, {"error", std::string(written.message())}});
    }
  }
  delegation->End(std::move(end));
  absl::MutexLock lock(&mutex_);
  active_.erase(Slot(delegation->identity().caller, delegation->identity().key));
  Remember(delegation);
  changed_.SignalAll();
}

void DelegationManager::Remember(std::shared_ptr<Delegation> ended) {
  const Slot slot(ended->identity().caller, ended->identity().key);
  if (const auto old = ended_index_.find(slot); old != ended_index_.end()) {
    ended_bytes_ -= SizeOf(**old->second);
    ended_.erase(old->second);
  }
  ended_bytes_ += SizeOf(*ended);
  ended_.push_front(std::move(ended));
  ended_index_[slot] = ended_.begin();
  while (ended_.size() > 1 && (ended_.size() > limits_.ended_in_memory ||
                               ended_bytes_ > limits_.ended_bytes_in_memory)) {
    const Delegation& last = *ended_.back();
    ended_bytes_ -= SizeOf(last);
    ended_index_.erase(Slot(last.identity().caller, last.identity().key));
    ended_.pop_back();
  }
}

// --- Stopping --------------------------------------------------------------

// A delegation that no worker has taken ends at once when it is stopped.
void DelegationManager::FinishIfQueued(const std::shared_ptr<Delegation>& delegation) {
  {
    absl::MutexLock lock(&mutex_);
    const auto waiting = std::find(queue_.begin(), queue_.end(), delegation);
    if (waiting == queue_.end()) return;
    queue_.erase(waiting);
  }
  Finish(delegation, delegation->Conclude(absl::CancelledError("stopped before it ran")));
}

std::shared_ptr<Delegation> DelegationManager::FindActive(
    const v1::CancelDelegationRequest& request, const std::string& caller) const {
  const auto known = [&](const std::shared_ptr<Delegation>& delegation) {
    return delegation->identity().id == request.delegation_id();
  };
  if (request.has_key()) {
    const Slot slot(caller, request.key());
    if (const auto found = active_.find(slot); found != active_.end()) return found->second;
    const auto ended = ended_index_.find(slot);
    return ended == ended_index_.end() ? nullptr : *ended->second;
  }
  for (const auto& [slot, delegation] : active_) {
    if (known(delegation)) return delegation;
  }
  const auto ended = std::find_if(ended_.begin(), ended_.end(), known);
  return ended == ended_.end() ? nullptr : *ended;
}

absl::StatusOr<v1::CancelOutcome> DelegationManager::Cancel(
    const std::string& caller, bool owner, const v1::CancelDelegationRequest& request) {
  std::shared_ptr<Delegation> found;
  {
    absl::MutexLock lock(&mutex_);
    found = FindActive(request, caller);
  }
  if (found == nullptr && request.has_key()) found = journal_->Read(caller, request.key());
  if (found == nullptr) {
    return MakeError(absl::StatusCode::kNotFound, "NO_SUCH_DELEGATION",
                     request.has_key() ? absl::StrCat("no delegation of this caller has the key '",
                                                      request.key(), "'")
                                       : absl::StrCat("no delegation '", request.delegation_id(),
                                                      "' is running or ended lately"));
  }
  if (!owner && found->identity().caller != caller) {
    return MakeError(absl::StatusCode::kPermissionDenied, "NOT_YOUR_DELEGATION",
                     absl::StrCat("delegation ", found->identity().id,
                                  " was started by another caller; only that one or the "
                                  "specialist's own user may cancel it"));
  }
  const v1::CancelOutcome outcome = found->Cancel();
  FinishIfQueued(found);
  return outcome;
}

void DelegationManager::DeadlineLoop() {
  while (true) {
    std::vector<std::shared_ptr<Delegation>> late;
    {
      absl::MutexLock lock(&mutex_);
      if (shutting_down_) return;
      absl::Time next = absl::InfiniteFuture();
      const absl::Time now = absl::Now();
      for (const auto& [slot, delegation] : active_) {
        if (delegation->stop_token().stop_requested()) continue;
        const absl::Time deadline = delegation->deadline();
        if (deadline <= now) late.push_back(delegation);
        next = std::min(next, deadline);
      }
      if (late.empty()) changed_.WaitWithDeadline(&mutex_, next);
    }
    for (const auto& delegation : late) {
      delegation->Stop(DeadlinePassed());
      FinishIfQueued(delegation);
    }
  }
}

uint32_t DelegationManager::running() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<uint32_t>(active_.size());
}

void DelegationManager::Shutdown() {
  std::vector<std::shared_ptr<Delegation>> active;
  {
    absl::MutexLock lock(&mutex_);
    shutting_down_ = true;
    for (const auto& [slot, delegation] : active_) active.push_back(delegation);
    changed_.SignalAll();
  }
  for (const auto& delegation : active) {
    delegation->Stop(ShuttingDown());
    FinishIfQueued(delegation);
  }
  absl::MutexLock lock(&shutdown_mutex_);
  threads_.clear();
}

}  // namespace solward::runtime
