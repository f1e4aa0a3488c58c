#include "coordinator/workflow/peak_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::workflow {
namespace {

absl::StatusOr<const Metric*> Refer(absl::string_view id, double value, absl::string_view column,
                                    const GpuPeak& row, int device, MeasureDraft& draft) {
  v1::Reference reference;
  reference.set_table("gpu_peaks");
  reference.set_row(row.name);
  reference.set_column(std::string(column));
  reference.set_source(row.source);
  reference.set_confidence(row.confidence);
  ASSIGN_OR_RETURN(Metric metric, Metric::Refer(draft.catalogue(), id, value, DeviceScope(device),
                                                std::move(reference)));
  return &draft.metrics.Add(std::move(metric));
}

// Tensor peaks are quoted at the tensor clock, the others at the boost clock.
bool QuotedAtBoost(absl::string_view column) {
  return column == "fp32" || absl::StartsWith(column, "fp64");
}

absl::Status AddClocks(const GpuPeak& row, absl::string_view column, DevicePeaks& peaks,
                       MeasureDraft& draft) {
  const int device = peaks.gpu.device();
  const bool at_boost = QuotedAtBoost(column);
  const std::optional<double>& clock = at_boost ? row.boost_hz : row.tensor_hz;
  if (!clock.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(peaks.clock, Refer("peak_clock", *clock, at_boost ? "boost_mhz" : "tensor_mhz",
                                      row, device, draft));
  if (!row.boost_hz.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Metric* boost,
                   Refer("boost_clock", *row.boost_hz, "boost_mhz", row, device, draft));
  ASSIGN_OR_RETURN(peaks.limit, draft.Derive("mfu_limit", DeviceScope(device),
                                             {{"boost", boost}, {"clock", peaks.clock}}));
  return absl::OkStatus();
}

absl::Status AddRow(const GpuPeak& row, v1::Dtype dtype, DevicePeaks& peaks, MeasureDraft& draft) {
  const int device = peaks.gpu.device();
  const std::string column(row.ColumnOf(dtype));
  if (row.dram_bytes_per_second.has_value()) {
    ASSIGN_OR_RETURN(peaks.bandwidth, Refer("peak_dram_bandwidth", *row.dram_bytes_per_second,
                                            "dram_gb_per_s", row, device, draft));
  }
  RETURN_IF_ERROR(AddClocks(row, column, peaks, draft));
  if (dtype == v1::DTYPE_UNSPECIFIED) {
    peaks.missing = "the dtype is not known";
    return absl::OkStatus();
  }
  const std::optional<double> flops = row.PeakOf(dtype);
  if (!flops.has_value()) {
    peaks.missing =
        absl::StrCat("the peak table has no figure of ", DtypeName(dtype), " for ", row.name);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(peaks.flops, Refer("peak_flops", *flops, column, row, device, draft));
  return absl::OkStatus();
}

// GPUs that a capture names; without any, those of the captures (or one) under
// the name that the client gave.
std::vector<v1::Gpu> KnownGpus(const MeasureDraft& draft, bool& given_by_client) {
  std::vector<v1::Gpu> named, nameless;
  for (const v1::Gpu& gpu : draft.out.environment().gpus()) {
    (gpu.name().empty() ? nameless : named).push_back(gpu);
  }
  const std::string& given = draft.understanding.request().context().gpu_name();
  given_by_client = named.empty() && !given.empty();
  if (!given_by_client) return named;
  if (nameless.empty()) nameless.emplace_back();
  for (v1::Gpu& gpu : nameless) gpu.set_name(given);
  return nameless;
}

bool HasName(const GpuPeak& row, absl::string_view name) {
  if (absl::EqualsIgnoreCase(row.name, name)) return true;
  return std::any_of(row.aliases.begin(), row.aliases.end(),
                     [&](const std::string& alias) { return absl::EqualsIgnoreCase(alias, name); });
}

// A client names a row of the table, or a device by a name only one row has. What
// a capture tells of the device must agree.
absl::StatusOr<const GpuPeak*> MatchGiven(const v1::Gpu& gpu, const GpuPeaks& peaks) {
  const GpuPeak* match = nullptr;
  for (const GpuPeak& row : peaks.rows()) {
    if (!HasName(row, gpu.name())) continue;
    if (match != nullptr) {
      return MakeError(absl::StatusCode::kNotFound, "PEAK_UNKNOWN",
                       absl::StrCat("no peak known for ", gpu.name(), ": it may be ", match->name,
                                    " or ", row.name, "; give one of these as gpu_name"));
    }
    match = &row;
  }
  if (match == nullptr) return peaks.Match(gpu);
  const std::string capability = absl::StrCat(gpu.compute_major(), ".", gpu.compute_minor());
  if (gpu.compute_major() > 0 && match->compute_capability != capability) {
    return MakeError(absl::StatusCode::kNotFound, "PEAK_UNKNOWN",
                     absl::StrCat("no peak known for ", gpu.name(),
                                  ": compute capability: expected ", match->compute_capability,
                                  ", found ", capability, " in a capture; check gpu_name"));
  }
  return match;
}

}  // namespace

absl::StatusOr<PeakTable> PeakTable::Make(v1::Dtype dtype, MeasureDraft& draft) {
  PeakTable table;
  bool given = false;
  const std::vector<v1::Gpu> gpus = KnownGpus(draft, given);
  const GpuPeaks& rows = draft.knowledge.peaks;
  for (const v1::Gpu& gpu : gpus) {
    const absl::StatusOr<const GpuPeak*> row = given ? MatchGiven(gpu, rows) : rows.Match(gpu);
    DevicePeaks peaks;
    peaks.gpu = gpu;
    if (!row.ok()) {
      peaks.missing = std::string(row.status().message());
      table.devices_.push_back(std::move(peaks));
      continue;
    }
    // Two captures of one GPU share its figures.
    bool shared = false;
    for (const DevicePeaks& other : table.devices_) {
      if (other.row != *row || other.gpu.device() != gpu.device()) continue;
      peaks = other;
      peaks.gpu = gpu;
      shared = true;
      break;
    }
    peaks.row = *row;
    if (!shared) RETURN_IF_ERROR(AddRow(**row, dtype, peaks, draft));
    table.devices_.push_back(std::move(peaks));
  }
  return table;
}

const DevicePeaks* PeakTable::Find(int device, absl::string_view artifact_id) const {
  const DevicePeaks* same_device = nullptr;
  for (const DevicePeaks& peaks : devices_) {
    const bool same = peaks.gpu.device() == device || device < 0;
    if (same && peaks.gpu.artifact_id() == artifact_id) return &peaks;
    // A capture that matched is worth more than one that named too little.
    if (same && (same_device == nullptr || !same_device->missing.empty())) same_device = &peaks;
  }
  if (same_device != nullptr) return same_device;
  return devices_.size() == 1 ? &devices_.front() : nullptr;
}

v1::Dtype ContextDtype(const v1::ProblemContext& context) {
  if (context.dtype() != v1::DTYPE_UNSPECIFIED) return context.dtype();
  for (const v1::Operation& operation : context.operations()) {
    if (operation.dtype() != v1::DTYPE_UNSPECIFIED) return operation.dtype();
  }
  return v1::DTYPE_UNSPECIFIED;
}

}  // namespace solward::workflow
