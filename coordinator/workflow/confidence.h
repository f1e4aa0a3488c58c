// How far a verdict can be trusted, and why not further.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_CONFIDENCE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_CONFIDENCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/workflow/lane_verdict.h"

namespace solward::workflow {

// What another capture of the same GPU says.
struct OtherView {
  const v1::Timeline* timeline;
  Verdict verdict;
};

// Sets confidence and confidence_reasons. `timeline` is the one judged, nullptr
// for counters alone. HIGH without any reason; an undetermined verdict is LOW;
// otherwise MEDIUM.
absl::Status SetConfidence(const Verdict& verdict, const v1::Timeline* timeline,
                           const std::vector<OtherView>& others, ClassifyDraft& draft,
                           v1::Classification& out);

// What would settle an undetermined verdict.
void SetMissing(const Verdict& verdict, const std::vector<CountedKernel>& counted,
                v1::Classification& out);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_CONFIDENCE_H_
