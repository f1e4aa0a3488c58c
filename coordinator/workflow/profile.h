// Stage 3, Profile: delegate, watch, collect. The measuring is the specialists'.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_PROFILE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_PROFILE_H_

#include <functional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/delegation/dispatcher.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// Runs the delegations, concurrently where they ask different specialists. A
// delegation that fails becomes an outcome with an error; only cancellation
// (CANCELLED) and deadlines end the stage itself.
absl::StatusOr<v1::Evidence> Profile(
    const std::vector<v1::PlannedDelegation>& delegations, delegation::Dispatcher& dispatcher,
    const std::function<void(const v1::DelegationProgressed&)>& on_progress, std::stop_token stop);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_PROFILE_H_
