// Output of `nvidia-smi --query-gpu=... --format=csv[,nounits]`, one shot or
// repeated.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/profiling/readers/csv.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/smi_values.h"
#include "agents/profiling/readers/statistics.h"
#include "common/status.h"

namespace solward::readers {
namespace {

constexpr uint64_t kMaxBytes = 1ull << 30;

struct Column {
  std::string field;  // "utilization.gpu"
  std::string unit;   // "%"; empty: none printed
};

Column ColumnOf(absl::string_view title) {
  title = absl::StripAsciiWhitespace(title);
  const size_t bracket = title.find(" [");
  if (bracket == absl::string_view::npos || !absl::EndsWith(title, "]")) {
    return {std::string(title), ""};
  }
  return {std::string(title.substr(0, bracket)),
          std::string(title.substr(bracket + 2, title.size() - bracket - 3))};
}

// Ordinal of each row's device: its index column, else the order in which its
// uuid or bus id first appears, else -1.
class Devices {
 public:
  int32_t Of(const SmiSample& sample) {
    const auto index = sample.values.find("index");
    if (index != sample.values.end() && index->second.value >= 0 && index->second.value < 1e6) {
      return static_cast<int32_t>(index->second.value);
    }
    const std::string name = SmiText(sample, {"uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"});
    if (name.empty()) return -1;
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<int32_t>(found - names_.begin());
    names_.push_back(name);
    return static_cast<int32_t>(names_.size() - 1);
  }

 private:
  std::vector<std::string> names_;
};

v1::Gpu GpuOf(const SmiSample& sample) {
  v1::Gpu gpu;
  gpu.set_device(sample.device);
  gpu.set_name(SmiText(sample, {"name", "gpu_name"}));
  gpu.set_uuid(SmiText(sample, {"uuid", "gpu_uuid"}));
  const std::string capability = SmiText(sample, {"compute_cap"});
  const std::vector<absl::string_view> parts = absl::StrSplit(capability, '.');
  uint32_t major = 0, minor = 0;
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &major) &&
      absl::SimpleAtoi(parts[1], &minor)) {
    gpu.set_compute_major(major);
    gpu.set_compute_minor(minor);
  }
  gpu.set_memory_bytes(static_cast<uint64_t>(SmiNumber(sample, {"memory.total"}, 1e16)));
  gpu.set_max_sm_clock_hz(static_cast<uint64_t>(SmiNumber(sample, {"clocks.max.sm"}, 1e12)));
  return gpu;
}

}  // namespace

absl::StatusOr<SmiReport> ReadNvidiaSmiCsv(const std::string& path, const ReaderLimits& limits) {
  const std::string label = path.substr(path.find_last_of('/') + 1);
  ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path, limits, kMaxBytes));
  const std::string text = ToUtf8(std::move(bytes));
  CsvRecords reader(text);
  std::vector<std::string> record;
  if (!reader.Next(&record)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_EMPTY",
                     absl::StrCat(label, ": no header line"));
  }
  std::vector<Column> columns;
  columns.reserve(record.size());
  for (const std::string& title : record) columns.push_back(ColumnOf(title));
  const std::vector<std::string> header = record;

  SmiReport report;
  Statistics statistics;
  Devices devices;
  uint64_t cells = 0;
  for (int64_t row = 0; reader.Next(&record); ++row) {
    if (record.size() == 1 && absl::StripAsciiWhitespace(record[0]).empty()) continue;
    // A loop that was started again prints its header again.
    if (record == header) continue;
    if (record.size() != columns.size()) {
      statistics.Count("smi_broken_rows", v1::PARSE_SEVERITY_DATA_LOSS,
                       "Rows with another number of cells than the header has; dropped.");
      continue;
    }
    cells += record.size();
    if (cells > limits.max_entries) {
      return MakeError(
          absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
          absl::StrCat(label, ": more than ", limits.max_entries, " values (limit max_entries)"));
    }
    SmiSample sample;
    sample.row = row;
    for (size_t i = 0; i < columns.size(); ++i) {
      AddSmiValue(columns[i].field, record[i], columns[i].unit, &sample, &statistics);
    }
    sample.device = devices.Of(sample);
    if (sample.device < 0) {
      statistics.Count("smi_rows_without_device", v1::PARSE_SEVERITY_INFO,
                       "Rows that do not say which GPU they are of; add index or uuid.");
    }
    if (report.driver_version.empty()) report.driver_version = SmiText(sample, {"driver_version"});
    const bool known = std::any_of(report.gpus.begin(), report.gpus.end(), [&](const v1::Gpu& gpu) {
      return gpu.device() == sample.device;
    });
    if (!known) report.gpus.push_back(GpuOf(sample));
    report.samples.push_back(std::move(sample));
  }
  if (report.samples.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "CAPTURE_HAS_NO_ROWS",
                     absl::StrCat(label, ": nvidia-smi CSV without a data row"));
  }
  report.statistics = statistics.Take();
  return report;
}

}  // namespace solward::readers
