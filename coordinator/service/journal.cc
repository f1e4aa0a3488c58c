#include "coordinator/service/journal.h"

#include "absl/strings/strip.h"
#include "common/log.h"

namespace solward::service {
namespace {

void LogChange(const v1::Analysis& analysis) {
  const bool failed = analysis.state() == v1::ANALYSIS_STATE_FAILED;
  if (failed) {
    Log(LogLevel::kError, "analysis",
        {{"id", analysis.id()},
         {"state", StateName(analysis.state())},
         {"stage", StageName(analysis.stage())},
         {"caller", analysis.caller()},
         {"reason", analysis.error().reason()},
         {"message", analysis.error().message()}});
    return;
  }
  Log(LogLevel::kInfo, "analysis",
      {{"id", analysis.id()},
       {"state", StateName(analysis.state())},
       {"stage", StageName(analysis.stage())},
       {"caller", analysis.caller()}});
}

}  // namespace

absl::StatusOr<store::Appended> Journal::Append(const std::string& analysis_id,
                                                store::Transition transition,
                                                const Update& update) {
  bool changed = false;
  const auto guarded = [&](v1::Analysis& analysis) -> absl::Status {
    const v1::AnalysisState state = analysis.state();
    const v1::Stage stage = analysis.stage();
    if (store::HasEnded(state)) {
      return MakeError(absl::StatusCode::kFailedPrecondition, "ANALYSIS_ENDED",
                       absl::StrCat("analysis ", analysis_id, ": has ended as ", StateName(state)));
    }
    RETURN_IF_ERROR(update(analysis));
    changed = state != analysis.state() || stage != analysis.stage();
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(store::Appended appended,
                   store_.Append(analysis_id, std::move(transition), guarded));
  if (changed) LogChange(appended.analysis);
  hub_.Notify(analysis_id);
  return appended;
}

bool IsAnalysisEnded(const absl::Status& status) { return ErrorReason(status) == "ANALYSIS_ENDED"; }

std::string StateName(v1::AnalysisState state) {
  return std::string(absl::StripPrefix(v1::AnalysisState_Name(state), "ANALYSIS_STATE_"));
}

std::string StageName(v1::Stage stage) {
  return std::string(absl::StripPrefix(v1::Stage_Name(stage), "STAGE_"));
}

}  // namespace solward::service
