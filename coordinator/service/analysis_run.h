// AnalysisRun: one analysis walking through the six stages.
#ifndef SOLWARD_COORDINATOR_SERVICE_ANALYSIS_RUN_H_
#define SOLWARD_COORDINATOR_SERVICE_ANALYSIS_RUN_H_

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/delegation/dispatcher.h"
#include "coordinator/service/journal.h"
#include "coordinator/workflow/knowledge.h"

namespace solward::service {

// What a run works with; everything outlives it.
struct RunEnvironment {
  Journal& journal;
  const workflow::Knowledge& knowledge;
  delegation::Dispatcher& dispatcher;
  // Progress of one delegation within one phase is kept at most this often.
  absl::Duration progress_interval = absl::Milliseconds(200);
};

// Used from one thread. Every stage's result is in the store before the next
// stage starts, so that a run can be taken up again after a restart: what is
// there is not done again, and delegations are found again by their keys.
class AnalysisRun {
 public:
  AnalysisRun(std::string analysis_id, RunEnvironment environment, std::stop_token stop);

  // Returns when the analysis has ended, waits for answers, or was stopped. A
  // stop leaves the state as it is: who stops it decides what it becomes.
  void Walk();

 private:
  absl::Status Stages();
  // True: questions were asked and the analysis waits.
  absl::StatusOr<bool> Understand(const v1::AnalysisRequest& request);
  absl::Status Plan();
  absl::Status FirstWave();
  absl::Status SecondWave();
  absl::Status Verdict();
  absl::Status Report();
  absl::StatusOr<v1::Evidence> Delegate(const std::vector<v1::PlannedDelegation>& delegations);
  absl::StatusOr<v1::Evidence> Wave(const std::vector<v1::PlannedDelegation>& delegations,
                                    store::Document document);

  absl::Status Enter(v1::Stage stage, store::Transition transition, const Update& also = nullptr);
  absl::Status Say(v1::Stage stage, const std::string& message);
  void Fail(const absl::Status& status);

  const std::string id_;
  RunEnvironment environment_;
  const std::stop_token stop_;
  v1::Understanding understanding_;
  v1::Plan plan_;
  v1::Evidence evidence_;
  v1::Measurement measurement_;
  v1::Classification classification_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_ANALYSIS_RUN_H_
