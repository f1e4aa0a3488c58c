// MFU and its factors, shares of printed peaks, the roofline.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/workflow/kernel_names.h"
#include "coordinator/workflow/measure_draft.h"
#include "coordinator/workflow/metric_view.h"
#include "coordinator/workflow/peak_table.h"

namespace solward::workflow {
namespace {

using Inputs = std::vector<std::pair<std::string, const Metric*>>;

// The kernel that "FLOPs per call" speaks of.
struct RatedCall {
  CountedKernel kernel;
  std::string unclear;  // why none is designated; empty when one is
  bool chosen = false;  // by time, among several
};

std::string ArtifactOf(const MetricSet& metrics, const Metric* metric) {
  const v1::Measured* source = metric == nullptr ? nullptr : MeasuredSource(metrics, *metric);
  return source == nullptr ? "" : source->artifact_id();
}

// Adds a derived metric to the kernel and to its row of the kernel table.
absl::StatusOr<const Metric*> DeriveForKernel(absl::string_view formula, const Inputs& inputs,
                                              CountedKernel& kernel, MeasureDraft& draft) {
  ASSIGN_OR_RETURN(const Metric* metric, draft.Derive(formula, kernel.Scope(), inputs));
  kernel.metrics.push_back(metric);
  draft.out.mutable_kernels(kernel.summary)->add_metric_keys(metric->key());
  return metric;
}

// What follows from counters and peaks for every counted kernel.
absl::Status AddKernelShares(const PeakTable& table, CountedKernel& kernel, MeasureDraft& draft) {
  const Metric* compute = kernel.Find("compute_throughput");
  const Metric* memory = kernel.Find("memory_throughput");
  const Metric* clock = kernel.Find("sm_clock");
  const Metric* bandwidth = kernel.Find("dram_bandwidth");
  const Metric* time = kernel.Find("kernel_time");
  if (kernel.Find("sol") == nullptr && compute != nullptr && memory != nullptr) {
    RETURN_IF_ERROR(
        DeriveForKernel("sol", {{"compute", compute}, {"memory", memory}}, kernel, draft).status());
  }
  const std::string artifact = ArtifactOf(draft.metrics, clock != nullptr ? clock : bandwidth);
  const DevicePeaks* peaks = table.Find(kernel.device, artifact);
  if (clock != nullptr && peaks != nullptr && peaks->clock != nullptr) {
    RETURN_IF_ERROR(DeriveForKernel("clock_share", {{"clock", clock}, {"peak_clock", peaks->clock}},
                                    kernel, draft)
                        .status());
  }
  if (bandwidth == nullptr) return absl::OkStatus();
  if (time != nullptr && kernel.Find("dram_bytes") == nullptr) {
    RETURN_IF_ERROR(
        DeriveForKernel("dram_bytes", {{"bandwidth", bandwidth}, {"time", time}}, kernel, draft)
            .status());
  }
  if (peaks != nullptr && peaks->bandwidth != nullptr) {
    RETURN_IF_ERROR(DeriveForKernel("dram_bandwidth_share",
                                    {{"bandwidth", bandwidth}, {"peak", peaks->bandwidth}}, kernel,
                                    draft)
                        .status());
  }
  const Metric* device_bandwidth =
      draft.metrics.Find("device_dram_bandwidth", DeviceScope(kernel.device));
  if (device_bandwidth == nullptr || device_bandwidth->value() <= 0) return absl::OkStatus();
  return DeriveForKernel("dram_bandwidth_device_share",
                         {{"bandwidth", bandwidth}, {"peak", device_bandwidth}}, kernel, draft)
      .status();
}

// The only kernel that the client's pattern left of a timeline.
RatedCall KernelOfTimeline(const MeasureDraft& draft) {
  RatedCall call;
  call.unclear = "FLOPs per call belong to one kernel, and the captures do not say to which";
  if (draft.understanding.request().constraints().kernel_pattern().empty()) return call;
  std::string name;
  for (int i = 0; i < draft.out.kernels_size(); ++i) {
    const v1::KernelSummary& summary = draft.out.kernels(i);
    if (summary.category() == v1::KERNEL_CATEGORY_COMMUNICATION) continue;
    const std::string normal = NormalKernelName(summary.name());
    if (!name.empty() && normal != name) {
      call.unclear = "FLOPs per call belong to one kernel, and the kernel pattern leaves several";
      return call;
    }
    if (!name.empty()) continue;
    name = normal;
    call.kernel.name = summary.name();
    call.kernel.normal_name = normal;
    call.kernel.device = summary.device();
    call.kernel.rank = summary.rank();
    call.kernel.summary = i;
    for (const std::string& key : summary.metric_keys()) {
      if (const Metric* metric = draft.metrics.FindKey(key)) call.kernel.metrics.push_back(metric);
    }
  }
  if (!name.empty()) call.unclear.clear();
  return call;
}

RatedCall DesignatedKernel(const std::vector<CountedKernel>& counted, const MeasureDraft& draft) {
  RatedCall call;
  int candidates = 0;
  for (const CountedKernel& kernel : counted) {
    if (kernel.category == v1::KERNEL_CATEGORY_COMMUNICATION) continue;
    if (candidates++ == 0) call.kernel = kernel;  // longest first
  }
  if (candidates == 0) return KernelOfTimeline(draft);
  call.chosen = candidates > 1;
  return call;
}

// More than the clock allows: FLOPs or dtype are wrong.
void CheckPossible(const Metric* mfu, const DevicePeaks& peaks, absl::string_view kernel,
                   MeasureDraft& draft) {
  if (peaks.limit == nullptr || mfu->value() <= peaks.limit->value()) return;
  v1::Finding& finding = draft.AddFinding("mfu_impossible", v1::SEVERITY_ERROR,
                                          {{"mfu", mfu}, {"limit", peaks.limit}});
  finding.mutable_location()->set_kernel(std::string(kernel));
}

// min(compute peak, intensity x DRAM peak).
absl::Status AddRoofline(const Metric* flops, const DevicePeaks* peaks, CountedKernel& kernel,
                         MeasureDraft& draft) {
  const Metric* bytes = kernel.Find("dram_bytes");
  if (bytes == nullptr || bytes->value() <= 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const Metric* intensity,
      DeriveForKernel("arithmetic_intensity", {{"flops", flops}, {"bytes", bytes}}, kernel, draft));
  if (peaks == nullptr || peaks->flops == nullptr || peaks->bandwidth == nullptr) {
    return absl::OkStatus();
  }
  return DeriveForKernel(
             "attainable_flops",
             {{"peak", peaks->flops}, {"intensity", intensity}, {"bandwidth", peaks->bandwidth}},
             kernel, draft)
      .status();
}

void ExplainNoPeak(v1::ScopeKind scope, const DevicePeaks* peaks, MeasureDraft& draft) {
  draft.AddUnmeasured(
      "mfu", scope, v1::UNMEASURED_REASON_NO_PEAK,
      peaks != nullptr ? absl::string_view(peaks->missing) : "no capture says which GPU it was",
      "add the device to the peak table (config/gpu_peaks.yaml), or give dtype and gpu_name in "
      "the context");
}

absl::Status AddKernelMfu(const Metric* flops, const PeakTable& table, RatedCall& call,
                          MeasureDraft& draft) {
  CountedKernel& kernel = call.kernel;
  const Metric* time = kernel.Find("kernel_time");
  if (time == nullptr || time->value() <= 0) {
    draft.AddUnmeasured("mfu", v1::SCOPE_KIND_KERNEL, v1::UNMEASURED_REASON_NOT_COLLECTED,
                        absl::StrCat("the duration of ", kernel.name, " was not collected"),
                        "collect the duration with the counters");
    return absl::OkStatus();
  }
  if (call.chosen) {
    draft.AddFinding("mfu_kernel_chosen", v1::SEVERITY_INFO, {{"time", time}, {"flops", flops}},
                     {{"kernel", kernel.name}});
  }
  RETURN_IF_ERROR(
      DeriveForKernel("kernel_flops", {{"flops", flops}, {"time", time}}, kernel, draft).status());
  const DevicePeaks* peaks = table.Find(kernel.device, ArtifactOf(draft.metrics, time));
  RETURN_IF_ERROR(AddRoofline(flops, peaks, kernel, draft));
  if (peaks == nullptr || peaks->flops == nullptr) {
    ExplainNoPeak(v1::SCOPE_KIND_KERNEL, peaks, draft);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const Metric* mfu,
      DeriveForKernel("mfu_of_kernel", {{"flops", flops}, {"time", time}, {"peak", peaks->flops}},
                      kernel, draft));
  CheckPossible(mfu, *peaks, kernel.name, draft);
  return absl::OkStatus();
}

// FLOPs of a step: given, or of its calls. nullptr when neither is known.
absl::StatusOr<const Metric*> StepFlops(const Metric* flops_per_call, MeasureDraft& draft) {
  if (const Metric* flops = draft.Context("flops_per_step")) return flops;
  const Metric* calls = draft.Context("calls_per_step");
  if (flops_per_call == nullptr || calls == nullptr) return static_cast<const Metric*>(nullptr);
  return draft.Derive("flops_per_step_of_calls", StepScope(),
                      {{"flops_per_call", flops_per_call}, {"calls", calls}});
}

absl::Status AddStepMfu(const Metric* flops, const PeakTable& table, MeasureDraft& draft) {
  const Metric* step = UnprofiledStepTime(draft.metrics, draft.catalogue(), -1, -1);
  if (step == nullptr || step->value() <= 0) {
    draft.AddUnmeasured("mfu", v1::SCOPE_KIND_STEP, v1::UNMEASURED_REASON_NEEDS_UNPROFILED_RUN,
                        "the MFU of a step needs its time without any profiler",
                        "give step_time of a run without any profiler in the context");
    return absl::OkStatus();
  }
  const int device = draft.out.timelines_size() > 0 ? draft.out.timelines(0).device() : -1;
  const DevicePeaks* peaks = table.Find(device, "");
  if (peaks == nullptr || peaks->flops == nullptr) {
    ExplainNoPeak(v1::SCOPE_KIND_STEP, peaks, draft);
    return absl::OkStatus();
  }
  Inputs inputs = {{"flops", flops}, {"step_time", step}, {"peak", peaks->flops}};
  const Metric* ranks = draft.Context("world_size");
  const bool whole_job = ranks != nullptr && ranks->value() > 1;
  if (whole_job) {
    inputs.emplace_back("ranks", ranks);
    draft.AddFinding("mfu_over_all_ranks", v1::SEVERITY_INFO, {{"flops", flops}, {"ranks", ranks}});
  }
  ASSIGN_OR_RETURN(const Metric* mfu, draft.Derive(whole_job ? "mfu_of_job_step" : "mfu_of_step",
                                                   StepScope(), inputs));
  CheckPossible(mfu, *peaks, "", draft);
  return absl::OkStatus();
}

void ExplainNoFlops(MeasureDraft& draft) {
  draft.AddUnmeasured("mfu", v1::SCOPE_KIND_KERNEL, v1::UNMEASURED_REASON_CONTEXT_MISSING,
                      "neither FLOPs nor the dimensions of a known operation are given",
                      "give flops_per_call, flops_per_step or the dimensions in the context");
}

}  // namespace

absl::Status AddPeakMetrics(MeasureDraft& draft) {
  const v1::ProblemContext& context = draft.understanding.request().context();
  ASSIGN_OR_RETURN(const PeakTable table, PeakTable::Make(ContextDtype(context), draft));
  std::vector<CountedKernel> counted =
      CountedKernels(draft.metrics, draft.out.kernels(), draft.out.timelines(), draft.catalogue());
  for (CountedKernel& kernel : counted) RETURN_IF_ERROR(AddKernelShares(table, kernel, draft));

  const Metric* flops = draft.Context("flops_per_call");
  ASSIGN_OR_RETURN(const Metric* step_flops, StepFlops(flops, draft));
  if (flops == nullptr && step_flops == nullptr && draft.Wants("mfu")) ExplainNoFlops(draft);
  if (flops != nullptr) {
    RatedCall call = DesignatedKernel(counted, draft);
    if (call.unclear.empty()) {
      RETURN_IF_ERROR(AddKernelMfu(flops, table, call, draft));
    } else if (draft.Wants("mfu")) {
      draft.AddUnmeasured("mfu", v1::SCOPE_KIND_KERNEL, v1::UNMEASURED_REASON_CONTEXT_MISSING,
                          call.unclear,
                          "collect counters of that kernel, or give flops_per_step and step_time");
    }
  }
  if (step_flops != nullptr) RETURN_IF_ERROR(AddStepMfu(step_flops, table, draft));
  return absl::OkStatus();
}

}  // namespace solward::workflow
