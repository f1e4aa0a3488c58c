#include "agents/profiling/smi_metrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agents/profiling/kernel_filter.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using readers::SmiReport;
using readers::SmiSample;

absl::Status AddSource(const SmiSource& source, int32_t device,
                       const std::vector<const SmiSample*>& samples, const std::string& artifact_id,
                       ResultBuilder* builder) {
  for (const absl::string_view field : source.fields) {
    std::vector<int64_t> rows;
    std::vector<double> values;
    double unit_scale = 1;
    for (const SmiSample* sample : samples) {
      const auto found = sample->values.find(field);
      if (found == sample->values.end()) continue;
      if (rows.empty()) unit_scale = found->second.unit_scale;
      rows.push_back(sample->row);
      values.push_back(found->second.value);
    }
    if (rows.empty()) continue;
    v1::Measured measured;
    measured.set_tool("nvidia-smi");
    measured.set_artifact_id(artifact_id);
    measured.set_raw_name(std::string(field));
    measured.mutable_rows()->set_table("gpu");
    SetRanges(rows, measured.mutable_rows());
    measured.set_aggregation(rows.size() == 1 ? v1::AGGREGATION_SINGLE : source.aggregation);
    measured.set_samples(rows.size());
    measured.set_unit_scale(unit_scale);
    SetSpread(values, &measured);
    const double value = source.aggregation == v1::AGGREGATION_MAX
                             ? *std::max_element(values.begin(), values.end())
                             : Mean(values);
    return builder->Measure(source.metric_id, value, DeviceScope(device), std::move(measured))
        .status();
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<SmiSource>& SmiSources() {
  static const auto* const kSources = new std::vector<SmiSource>{
      {"gpu_utilization", {"utilization.gpu", "utilization/gpu_util"}, v1::AGGREGATION_MEAN},
      {"memory_used", {"memory.used", "fb_memory_usage/used"}, v1::AGGREGATION_MAX},
      {"power",
       {"power.draw", "power.draw.average", "power.draw.instant",
        "gpu_power_readings/average_power_draw", "gpu_power_readings/power_draw",
        "gpu_power_readings/instant_power_draw", "power_readings/power_draw"},
       v1::AGGREGATION_MEAN},
      {"temperature", {"temperature.gpu", "temperature/gpu_temp"}, v1::AGGREGATION_MAX},
      {"device_sm_clock",
       {"clocks.sm", "clocks.current.sm", "clocks/sm_clock"},
       v1::AGGREGATION_MEAN},
  };
  return *kSources;
}

absl::Status AddSmiMetrics(const SmiReport& report, const std::string& artifact_id,
                           const v1::Constraints& constraints, ResultBuilder* builder) {
  ASSIGN_OR_RETURN(const KernelFilter filter, KernelFilter::Make(constraints));
  std::map<int32_t, std::vector<const SmiSample*>> by_device;
  for (const SmiSample& sample : report.samples) {
    if (filter.Wants(sample.device)) by_device[sample.device].push_back(&sample);
  }
  if (by_device.empty()) {
    return MakeError(absl::StatusCode::kNotFound, "DEVICE_NOT_FOUND",
                     "constraints.devices: nvidia-smi has no sample of the wanted devices");
  }
  builder->AddGpus(report.gpus, artifact_id);
  builder->AddTool("nvidia-smi", "");
  v1::Environment* environment = builder->result().mutable_environment();
  if (environment->driver_version().empty()) environment->set_driver_version(report.driver_version);
  if (environment->cuda_version().empty()) environment->set_cuda_version(report.cuda_version);
  for (const auto& [device, samples] : by_device) {
    for (const SmiSource& source : SmiSources()) {
      RETURN_IF_ERROR(AddSource(source, device, samples, artifact_id, builder));
    }
  }
  return absl::OkStatus();
}

}  // namespace solward::profiling
