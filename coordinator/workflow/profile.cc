#include "coordinator/workflow/profile.h"

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "common/status.h"

namespace solward::workflow {
namespace {

// Positions of delegations that wait for each other: one specialist is asked
// one thing at a time, so that it never measures beside itself for one analysis.
std::vector<std::vector<size_t>> Lanes(const std::vector<v1::PlannedDelegation>& delegations) {
  std::map<std::string, std::vector<size_t>> by_specialist;
  for (size_t i = 0; i < delegations.size(); ++i) {
    by_specialist[delegations[i].specialist()].push_back(i);
  }
  std::vector<std::vector<size_t>> lanes;
  lanes.reserve(by_specialist.size());
  for (auto& [specialist, lane] : by_specialist) lanes.push_back(std::move(lane));
  return lanes;
}

}  // namespace

absl::StatusOr<v1::Evidence> Profile(
    const std::vector<v1::PlannedDelegation>& delegations, delegation::Dispatcher& dispatcher,
    const std::function<void(const v1::DelegationProgressed&)>& on_progress, std::stop_token stop) {
  std::mutex progress_mutex;  // lanes report one at a time
  const auto report = [&](const v1::DelegationProgressed& progressed) {
    std::lock_guard lock(progress_mutex);
    on_progress(progressed);
  };
  std::vector<v1::DelegationOutcome> outcomes(delegations.size());
  const auto run_lane = [&](const std::vector<size_t>& lane) {
    for (const size_t i : lane) {
      if (stop.stop_requested()) return;
      outcomes[i] = dispatcher.Dispatch(delegations[i], report, stop);
    }
  };
  const std::vector<std::vector<size_t>> lanes = Lanes(delegations);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < lanes.size(); ++i) {
      threads.emplace_back([&run_lane, &lane = lanes[i]] { run_lane(lane); });
    }
    if (!lanes.empty()) run_lane(lanes[0]);
  }
  if (stop.stop_requested()) {
    return MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED",
                     "the analysis was cancelled while its delegations ran");
  }
  v1::Evidence evidence;
  for (v1::DelegationOutcome& outcome : outcomes) *evidence.add_outcomes() = std::move(outcome);
  return evidence;
}

}  // namespace solward::workflow
