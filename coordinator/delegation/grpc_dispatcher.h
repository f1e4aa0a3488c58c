// Dispatcher over gRPC to the specialists of a registry.
#ifndef SOLWARD_COORDINATOR_DELEGATION_GRPC_DISPATCHER_H_
#define SOLWARD_COORDINATOR_DELEGATION_GRPC_DISPATCHER_H_

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/delegation/dispatcher.h"
#include "coordinator/delegation/registry.h"
#include "solward/v1/analysis.pb.h"

namespace solward::delegation {

struct DispatcherOptions {
  // How long a first-wave delegation waits for its specialist to register: both
  // may just have been started, or the coordinator again, and then a specialist
  // comes back with its next heartbeat. A second wave asks only whom it finds.
  absl::Duration wait_for_specialist = absl::Seconds(10);
  // Deadline of a delegation without a time budget of its own.
  absl::Duration deadline = absl::Minutes(30);
  // Added to a time budget: the specialist ends in time by itself.
  absl::Duration deadline_margin = absl::Seconds(10);
  int max_attempts = 3;
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration cancel_deadline = absl::Seconds(2);
};

// Thread-safe. Tries again, up to `max_attempts`, only when a specialist was
// UNAVAILABLE before it said anything: delegations are idempotent by key. On
// `stop` the call ends and the specialist is told to cancel.
class GrpcDispatcher : public Dispatcher {
 public:
  // `registry` must outlive the dispatcher.
  GrpcDispatcher(Registry& registry, DispatcherOptions options);

  v1::DelegationOutcome Dispatch(
      const v1::PlannedDelegation& planned,
      const std::function<void(const v1::DelegationProgressed&)>& on_progress,
      std::stop_token stop) override;

  // From now on a stop leaves delegations running at their specialists, so that
  // the coordinator finds them again by key after its own restart.
  void Detach() { detached_ = true; }

 private:
  struct Attempt;
  absl::Status Try(const Endpoint& endpoint, absl::Time deadline, const std::stop_token& stop,
                   const std::function<void(const v1::DelegationProgressed&)>& on_progress,
                   Attempt& attempt);
  absl::Status Run(const std::string& instance, const std::stop_token& stop,
                   const std::function<void(const v1::DelegationProgressed&)>& on_progress,
                   v1::DelegationOutcome& outcome);
  void CancelAt(const Endpoint& endpoint, const std::string& key);

  Registry& registry_;
  const DispatcherOptions options_;
  std::atomic<bool> detached_ = false;
};

// Instance that keeps every capture of the request; empty when it has none.
// INVALID_ARGUMENT when they lie with different specialists.
absl::StatusOr<std::string> InstanceOfCaptures(const v1::DelegationRequest& request);

// A status as it stands in an outcome.
v1::AnalysisError ToAnalysisError(const absl::Status& status);

}  // namespace solward::delegation

#endif  // SOLWARD_COORDINATOR_DELEGATION_GRPC_DISPATCHER_H_
