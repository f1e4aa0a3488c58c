// Results of several delegations become one measurement with report-wide keys.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/workflow/measure_draft.h"

namespace solward::workflow {
namespace {

using Keys = std::map<std::string, std::string>;

absl::Status Invalid(absl::string_view who, absl::string_view what) {
  return MakeError(absl::StatusCode::kInternal, "RESULT_INVALID",
                   absl::StrCat("result of ", who, ": ", what,
                                "; ask the operator of that specialist to update it"));
}

// INTERNAL when a part of a result refers to a metric that is not in it.
absl::Status Rekey(const Keys& keys, absl::string_view who, std::string* key) {
  const auto found = keys.find(*key);
  if (found == keys.end()) {
    return Invalid(who, absl::StrCat("expected a metric of the result, found key \"", *key, "\""));
  }
  *key = found->second;
  return absl::OkStatus();
}

// Copies the parts that list metric keys (kernels, timelines, ...).
template <typename Part>
absl::Status AddRekeyed(const google::protobuf::RepeatedPtrField<Part>& from, const Keys& keys,
                        absl::string_view who, google::protobuf::RepeatedPtrField<Part>* to) {
  for (const Part& part : from) {
    Part* added = to->Add();
    *added = part;
    for (std::string& key : *added->mutable_metric_keys()) {
      RETURN_IF_ERROR(Rekey(keys, who, &key));
    }
  }
  return absl::OkStatus();
}

absl::Status AddFindings(const v1::DelegationResult& result, const Keys& keys,
                         absl::string_view who, v1::Measurement& out) {
  for (const v1::Finding& finding : result.findings()) {
    v1::Finding* added = out.add_findings();
    *added = finding;
    for (auto& [name, key] : *added->mutable_metric_keys()) {
      RETURN_IF_ERROR(Rekey(keys, who, &key));
    }
  }
  return absl::OkStatus();
}

bool SameGpu(const v1::Gpu& a, const v1::Gpu& b) {
  return a.device() == b.device() && a.name() == b.name() && a.uuid() == b.uuid() &&
         a.memory_bytes() == b.memory_bytes() && a.artifact_id() == b.artifact_id();
}

void MergeEnvironment(const v1::Environment& from, v1::Environment& to) {
  for (const v1::Gpu& gpu : from.gpus()) {
    bool known = false;
    for (const v1::Gpu& other : to.gpus()) known = known || SameGpu(gpu, other);
    if (!known) *to.add_gpus() = gpu;
  }
  for (const v1::ToolVersion& tool : from.tools()) {
    bool known = false;
    for (const v1::ToolVersion& other : to.tools()) {
      known = known || (tool.tool() == other.tool() && tool.version() == other.version());
    }
    if (!known) *to.add_tools() = tool;
  }
  if (to.driver_version().empty()) to.set_driver_version(from.driver_version());
  if (to.cuda_version().empty()) to.set_cuda_version(from.cuda_version());
  if (to.host_name().empty()) to.set_host_name(from.host_name());
}

// A second delegation over the same captures names the same artifacts again.
void MergeCaptures(const v1::DelegationResult& result, v1::Measurement& out) {
  for (const v1::ArtifactReference& artifact : result.artifacts()) {
    bool known = false;
    for (const v1::ArtifactReference& other : out.artifacts()) {
      known = known || other.id() == artifact.id();
    }
    if (!known) *out.add_artifacts() = artifact;
  }
  for (const v1::CaptureOutcome& capture : result.captures()) {
    bool known = false;
    for (const v1::CaptureOutcome& other : out.captures()) {
      known = known ||
              (other.artifact_id() == capture.artifact_id() && other.label() == capture.label());
    }
    if (!known) *out.add_captures() = capture;
  }
}

absl::Status MergeResult(const v1::DelegationOutcome& outcome, MeasureDraft& draft) {
  const v1::DelegationResult& result = outcome.result();
  const std::string who =
      absl::StrCat(outcome.planned().specialist(), " (delegation ", outcome.delegation_id(), ")");
  absl::StatusOr<Keys> keys = draft.metrics.Merge(draft.catalogue(), result.metrics());
  if (!keys.ok()) return Invalid(who, keys.status().message());
  v1::Measurement& out = draft.out;
  RETURN_IF_ERROR(AddRekeyed(result.kernels(), *keys, who, out.mutable_kernels()));
  RETURN_IF_ERROR(AddRekeyed(result.timelines(), *keys, who, out.mutable_timelines()));
  RETURN_IF_ERROR(
      AddRekeyed(result.synchronizations(), *keys, who, out.mutable_synchronizations()));
  RETURN_IF_ERROR(AddRekeyed(result.graph_launches(), *keys, who, out.mutable_graph_launches()));
  RETURN_IF_ERROR(AddFindings(result, *keys, who, out));
  out.mutable_unmeasured()->MergeFrom(result.unmeasured());
  out.mutable_parse_statistics()->MergeFrom(result.parse_statistics());
  MergeEnvironment(result.environment(), *out.mutable_environment());
  MergeCaptures(result, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status MergeResults(const v1::Evidence& evidence, MeasureDraft& draft) {
  for (const v1::DelegationOutcome& outcome : evidence.outcomes()) {
    if (outcome.has_result()) {
      RETURN_IF_ERROR(MergeResult(outcome, draft));
    } else {
      *draft.out.add_unanswered() = outcome;
    }
  }
  const absl::StatusOr<Keys> keys =
      draft.metrics.Merge(draft.catalogue(), draft.understanding.context_metrics());
  if (keys.ok()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInternal, "CONTEXT_INVALID",
                   absl::StrCat("problem context: ", keys.status().message()));
}

}  // namespace solward::workflow
