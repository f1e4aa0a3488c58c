#include "agents/profiling/profiling_specialist.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agents/profiling/counter_metrics.h"
#include "agents/profiling/kernel_filter.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/recompute.h"
#include "agents/profiling/result_builder.h"
#include "agents/profiling/smi_metrics.h"
#include "agents/profiling/timeline_metrics.h"
#include "agents/profiling/unmeasured.h"
#include "common/metric_catalogue.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

constexpr v1::CaptureKind kReadableKinds[] = {
    v1::CAPTURE_KIND_NCU_CSV_RAW,    v1::CAPTURE_KIND_NCU_CSV_DETAILS,
    v1::CAPTURE_KIND_NSYS_SQLITE,    v1::CAPTURE_KIND_TORCH_TRACE,
    v1::CAPTURE_KIND_NVIDIA_SMI_CSV, v1::CAPTURE_KIND_NVIDIA_SMI_XML};

bool IsTimeline(v1::CaptureKind kind) {
  return kind == v1::CAPTURE_KIND_NSYS_SQLITE || kind == v1::CAPTURE_KIND_TORCH_TRACE;
}

// Whatever a readable capture holds.
using Model = std::variant<readers::CounterReport, timeline::Timeline, readers::SmiReport>;

template <typename T>
absl::StatusOr<Model> AsModel(absl::StatusOr<T> read) {
  if (!read.ok()) return read.status();
  return Model(*std::move(read));
}

absl::StatusOr<Model> ReadModel(const std::string& path, v1::CaptureKind kind) {
  const readers::ReaderLimits limits;
  switch (kind) {
    case v1::CAPTURE_KIND_NCU_CSV_RAW:
    case v1::CAPTURE_KIND_NCU_CSV_DETAILS:
      return AsModel(readers::ReadNcuCsv(path, limits));
    case v1::CAPTURE_KIND_NSYS_SQLITE:
      return AsModel(readers::ReadNsysSqlite(path, limits));
    case v1::CAPTURE_KIND_TORCH_TRACE:
      return AsModel(readers::ReadTorchTrace(path, limits));
    case v1::CAPTURE_KIND_NVIDIA_SMI_CSV:
      return AsModel(readers::ReadNvidiaSmiCsv(path, limits));
    case v1::CAPTURE_KIND_NVIDIA_SMI_XML:
      return AsModel(readers::ReadNvidiaSmiXml(path, limits));
    case v1::CAPTURE_KIND_NCU_REPORT:
      return MakeError(absl::StatusCode::kUnimplemented, "CAPTURE_KIND_UNSUPPORTED",
                       "a report of Nsight Compute, which cannot be read as it is yet; export it "
                       "with `ncu --import FILE --page raw --csv` and give the CSV");
    case v1::CAPTURE_KIND_NSYS_REPORT:
      return MakeError(absl::StatusCode::kUnimplemented, "CAPTURE_KIND_UNSUPPORTED",
                       "a report of Nsight Systems, which cannot be read as it is yet; export it "
                       "with `nsys export --type sqlite FILE` and give the SQLite file");
    default:
      return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNSUPPORTED",
                       absl::StrCat("a ", readers::KindName(kind), " is no capture to analyse"));
  }
}

const std::vector<v1::ParseStatistic>& StatisticsOf(const Model& model) {
  return std::visit(
      [](const auto& m) -> const std::vector<v1::ParseStatistic>& { return m.statistics; }, model);
}

std::string ToolOf(const Model& model, std::string* version) {
  if (const auto* counters = std::get_if<readers::CounterReport>(&model)) {
    *version = counters->tool_version;
    return "ncu";
  }
  if (const auto* timeline = std::get_if<timeline::Timeline>(&model)) {
    *version = timeline->tool_version;
    return timeline->tool;
  }
  version->clear();
  return "nvidia-smi";
}

// One capture of a delegation.
struct Capture {
  v1::ArtifactReference artifact;
  std::string path;
  v1::CaptureOutcome outcome;
};

class Delegation {
 public:
  Delegation(const v1::DelegationRequest& request, runtime::DelegationContext& context)
      : request_(request), context_(context), builder_(BuiltInCatalogue()) {}

  absl::StatusOr<v1::DelegationResult> Run() {
    RETURN_IF_ERROR(FindCaptures());
    // Timelines first: what counters add depends on whether there is one.
    std::vector<Capture*> order;
    for (Capture& capture : captures_) order.push_back(&capture);
    std::stable_partition(order.begin(), order.end(), [](const Capture* capture) {
      return IsTimeline(capture->outcome.kind());
    });
    for (size_t i = 0; i < order.size(); ++i) {
      RETURN_IF_ERROR(CheckStop());
      if (order[i]->outcome.code() != 0) continue;
      Progress(v1::DELEGATION_PHASE_READING,
               absl::StrCat("reading ", order[i]->outcome.label(), " (",
                            readers::KindName(order[i]->outcome.kind()), ")"),
               static_cast<double>(i) / static_cast<double>(order.size()));
      SetOutcome(Read(*order[i]), order[i]);
    }
    RETURN_IF_ERROR(CheckStop());
    AddUnmeasuredMetrics(request_, seen_, &builder_);
    for (Capture& capture : captures_) {
      *builder_.result().add_captures() = capture.outcome;
      if (!capture.artifact.id().empty()) *builder_.result().add_artifacts() = capture.artifact;
    }
    return std::move(builder_).Finish();
  }

 private:
  absl::Status CheckStop() const {
    if (!context_.stop.stop_requested()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kCancelled, "DELEGATION_CANCELLED",
                     "the delegation was cancelled while its captures were read");
  }

  void Progress(v1::DelegationPhase phase, const std::string& message, double fraction) const {
    if (context_.progress) context_.progress(phase, message, fraction);
  }

  // The same artifact given twice counts once.
  absl::Status FindCaptures() {
    std::set<std::string> seen;
    for (const v1::ArtifactReference& given : request_.workload().captures().captures()) {
      RETURN_IF_ERROR(CheckStop());
      if (!seen.insert(given.id()).second) continue;
      captures_.emplace_back();
      Capture& capture = captures_.back();
      capture.outcome.set_artifact_id(given.id());
      capture.outcome.set_label(given.label());
      SetOutcome(Locate(given, &capture), &capture);
    }
    return absl::OkStatus();
  }

  absl::Status Locate(const v1::ArtifactReference& given, Capture* capture) {
    ASSIGN_OR_RETURN(capture->artifact, context_.workspace.Find(given.id()));
    if (capture->outcome.label().empty()) capture->outcome.set_label(capture->artifact.label());
    ASSIGN_OR_RETURN(capture->path, context_.workspace.PathOf(given.id()));
    ASSIGN_OR_RETURN(const v1::CaptureKind kind, readers::DetectKind(capture->path));
    capture->outcome.set_kind(kind);
    capture->artifact.set_kind(kind);
    return context_.workspace.SetKind(given.id(), kind);
  }

  absl::Status Read(Capture& capture) {
    ASSIGN_OR_RETURN(const Model model, ReadModel(capture.path, capture.outcome.kind()));
    std::string version;
    capture.outcome.set_tool(ToolOf(model, &version));
    capture.outcome.set_tool_version(version);
    builder_.AddStatistics(StatisticsOf(model), capture.artifact.id());
    return AddMetrics(model, capture.artifact.id());
  }

  absl::Status AddMetrics(const Model& model, const std::string& artifact_id) {
    if (const auto* counters = std::get_if<readers::CounterReport>(&model)) {
      RETURN_IF_ERROR(AddCounterMetrics(
          *counters, {artifact_id, request_.constraints(), /*with_totals=*/!seen_.timeline},
          &builder_));
      (counters->table == "raw" ? seen_.raw_counters : seen_.printed_counters) = true;
    } else if (const auto* timeline = std::get_if<timeline::Timeline>(&model)) {
      RETURN_IF_ERROR(AddTimelineMetrics(
          *timeline, {artifact_id, request_.region(), request_.constraints()}, &builder_));
      seen_.timeline = true;
    } else if (const auto* samples = std::get_if<readers::SmiReport>(&model)) {
      RETURN_IF_ERROR(AddSmiMetrics(*samples, artifact_id, request_.constraints(), &builder_));
      seen_.device_samples = true;
    }
    return absl::OkStatus();
  }

  void SetOutcome(const absl::Status& status, Capture* capture) {
    if (status.ok()) return;
    seen_.unreadable = true;
    capture->outcome.set_code(static_cast<int32_t>(status.code()));
    // Readers call a file by its name; outside it is known by its label.
    std::string message(status.message());
    const std::string file = capture->path.substr(capture->path.find_last_of('/') + 1);
    const std::string& label = capture->outcome.label();
    if (!file.empty()) message = absl::StrReplaceAll(message, {{file, label}});
    if (message.rfind(label, 0) != 0) message = absl::StrCat(label, ": ", message);
    capture->outcome.set_message(message);
  }

  const v1::DelegationRequest& request_;
  runtime::DelegationContext& context_;
  ResultBuilder builder_;
  std::vector<Capture> captures_;
  CapturesSeen seen_;
};

absl::Status CheckWorkload(const v1::DelegationRequest& request) {
  switch (request.workload().what_case()) {
    case v1::Workload::kCaptures:
      break;
    case v1::Workload::WHAT_NOT_SET:
      return MakeBadRequest("WORKLOAD_MISSING", "the delegation names no workload",
                            {{"delegation.workload", "expected at least one capture"}});
    default:
      return MakeError(absl::StatusCode::kUnimplemented, "WORKLOAD_KIND_UNSUPPORTED",
                       "running a command, source file or snippet is not built yet; record the "
                       "workload and give the captures");
  }
  if (request.workload().captures().captures().empty()) {
    return MakeBadRequest("WORKLOAD_MISSING", "the delegation names no capture",
                          {{"delegation.workload.captures", "expected at least one capture"}});
  }
  // A pattern that does not compile is an error of the request, not of a capture.
  return KernelFilter::Make(request.constraints()).status();
}

class ProfilingSpecialist : public runtime::Specialist {
 public:
  v1::SpecialistDescription Describe() const override {
    v1::SpecialistDescription description;
    description.set_name("perf-profiling-specialist");
    description.set_version(SOLWARD_VERSION);
    for (const std::string& id : MeasurableMetrics()) description.add_metric_ids(id);
    for (const v1::CaptureKind kind : kReadableKinds) description.add_capture_kinds(kind);
    description.add_workload_kinds("captures");
    return description;
  }

  v1::CaptureKind KindOf(const std::string& path) const override {
    // What is no capture is explained when it is to be read.
    return readers::DetectKind(path).value_or(v1::CAPTURE_KIND_UNSPECIFIED);
  }

  absl::StatusOr<v1::DelegationResult> Run(const v1::DelegationRequest& request,
                                           runtime::DelegationContext& context) override {
    RETURN_IF_ERROR(CheckWorkload(request));
    return Delegation(request, context).Run();
  }

  absl::StatusOr<std::vector<v1::RecomputedMetric>> Recompute(
      const std::vector<v1::Metric>& metrics, runtime::Workspace& workspace) override {
    std::vector<v1::RecomputedMetric> verdicts(metrics.size());
    std::map<std::string, std::vector<size_t>> by_artifact;
    for (size_t i = 0; i < metrics.size(); ++i) {
      verdicts[i].set_key(metrics[i].key());
      if (metrics[i].provenance().has_measured()) {
        by_artifact[metrics[i].provenance().measured().artifact_id()].push_back(i);
      } else {
        verdicts[i].set_verdict(v1::RECOMPUTE_VERDICT_NOT_FOUND);
        verdicts[i].set_detail("not measured: nothing to compute from an artifact");
      }
    }
    for (const auto& [artifact_id, indices] : by_artifact) {
      RecomputeArtifact(artifact_id, indices, metrics, workspace, &verdicts);
    }
    return verdicts;
  }

 private:
  static absl::StatusOr<Model> ReadArtifact(const std::string& artifact_id,
                                            runtime::Workspace& workspace) {
    ASSIGN_OR_RETURN(const std::string path, workspace.PathOf(artifact_id));
    ASSIGN_OR_RETURN(const v1::CaptureKind kind, readers::DetectKind(path));
    return ReadModel(path, kind);
  }

  static void RecomputeArtifact(const std::string& artifact_id, const std::vector<size_t>& indices,
                                const std::vector<v1::Metric>& metrics,
                                runtime::Workspace& workspace,
                                std::vector<v1::RecomputedMetric>* verdicts) {
    const absl::StatusOr<Model> model = ReadArtifact(artifact_id, workspace);
    std::unique_ptr<TimelineRecomputer> timeline;
    if (model.ok() && std::holds_alternative<timeline::Timeline>(*model)) {
      timeline = std::make_unique<TimelineRecomputer>(std::get<timeline::Timeline>(*model));
    }
    for (const size_t i : indices) {
      v1::RecomputedMetric& verdict = (*verdicts)[i];
      if (!model.ok()) {
        verdict.set_verdict(v1::RECOMPUTE_VERDICT_NO_ARTIFACT);
        verdict.set_detail(std::string(model.status().message()));
        continue;
      }
      const v1::Measured& measured = metrics[i].provenance().measured();
      absl::StatusOr<double> value;
      if (timeline != nullptr) {
        value = timeline->Recompute(measured);
      } else if (const auto* counters = std::get_if<readers::CounterReport>(&*model)) {
        value = RecomputeCounter(*counters, measured);
      } else {
        value = RecomputeSample(std::get<readers::SmiReport>(*model), measured);
      }
      SetVerdict(value, metrics[i].value(), &verdict);
    }
  }

  static void SetVerdict(const absl::StatusOr<double>& value, double claimed,
                         v1::RecomputedMetric* verdict) {
    if (!value.ok()) {
      verdict->set_verdict(v1::RECOMPUTE_VERDICT_NOT_FOUND);
      verdict->set_detail(std::string(value.status().message()));
      return;
    }
    verdict->set_value(*value);
    const bool agree = Agree(*value, claimed);
    verdict->set_verdict(agree ? v1::RECOMPUTE_VERDICT_MATCHES : v1::RECOMPUTE_VERDICT_DIFFERS);
    if (!agree) {
      verdict->set_detail(absl::StrCat("the artifact gives ", *value, ", the report ", claimed));
    }
  }
};

}  // namespace

std::unique_ptr<runtime::Specialist> MakeProfilingSpecialist() {
  return std::make_unique<ProfilingSpecialist>();
}

}  // namespace solward::profiling
