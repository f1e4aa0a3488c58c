// What every capture reader has in common. A reader turns a file of hostile
// origin into a model within limits, counts what it cannot use, and never
// crashes: it returns a Status that says what, where, expected, found.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_READER_H_
#define SOLWARD_AGENTS_PROFILING_READERS_READER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/timeline/timeline.h"
#include "solward/v1/delegation.pb.h"

namespace solward::readers {

// Beyond a limit: RESOURCE_EXHAUSTED naming it.
struct ReaderLimits {
  uint64_t max_decompressed_bytes = 64ull << 30;
  uint64_t max_entries = 500'000'000;
  uint64_t max_string_bytes = 1 << 20;
  uint32_t max_depth = 64;
  uint64_t max_model_bytes = 8ull << 30;
};

// Kind by content (magic bytes, header line, first keys), through gzip and
// zstd, never by file name. INVALID_ARGUMENT says what the file looks like and
// which kinds are readable; an empty file says so.
absl::StatusOr<v1::CaptureKind> DetectKind(const std::string& path);

// Short name for messages: "nsys SQLite export", "ncu CSV (raw page)".
absl::string_view KindName(v1::CaptureKind kind);

// Timelines.
absl::StatusOr<timeline::Timeline> ReadNsysSqlite(const std::string& path,
                                                  const ReaderLimits& limits);
absl::StatusOr<timeline::Timeline> ReadTorchTrace(const std::string& path,
                                                  const ReaderLimits& limits);

// One profiled kernel launch of ncu with its metrics under ncu's own names,
// scaled to base units (s -> ns, byte, byte/s, hz, %).
struct CounterValue {
  double value = 0;
  std::string unit;       // unit after scaling: "ns", "By", "By/s", "Hz", "%", "inst", ...
  double unit_scale = 1;  // value = printed * unit_scale
};

struct CounterLaunch {
  int64_t id = 0;  // "ID" of ncu
  std::string kernel;
  int32_t device = 0;
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  // By ncu's metric name. From a details page: the raw name where the table of
  // docs/protocol.md knows it, else "Section/Metric Name".
  std::map<std::string, CounterValue, std::less<>> values;
  std::map<std::string, std::string, std::less<>> texts;  // non-numeric values
  // Printed name and section of each value (details page); empty: same as key.
  std::map<std::string, std::string, std::less<>> printed_names;
};

// An estimate or advice of the tool's own rules (details page).
struct CounterRule {
  int64_t launch_id = 0;
  std::string section, rule, type, text;
  double estimated_speedup_percent = -1;  // -1: none given
  std::string speedup_type;               // "local" or "global"; empty: none given
};

struct CounterReport {
  std::vector<CounterLaunch> launches;
  std::vector<CounterRule> rules;
  std::vector<v1::Gpu> gpus;
  std::string tool_version;  // empty: the capture does not say
  std::string table;         // "raw" or "details"
  std::string process_name;
  std::vector<v1::ParseStatistic> statistics;
};

absl::StatusOr<CounterReport> ReadNcuCsv(const std::string& path, const ReaderLimits& limits);

// Samples of nvidia-smi by field, per GPU, in base units; "[N/A]", "N/A",
// "[Not Supported]", "[Unknown Error]" and the like are absent, never 0.
struct SmiSample {
  int64_t row = 0;
  int32_t device = -1;
  // Field by the query's name without unit: "utilization.gpu", "power.draw".
  std::map<std::string, CounterValue, std::less<>> values;
  std::map<std::string, std::string, std::less<>> texts;
};

struct SmiReport {
  std::vector<SmiSample> samples;
  std::vector<v1::Gpu> gpus;
  std::string driver_version, cuda_version;
  std::vector<v1::ParseStatistic> statistics;
};

absl::StatusOr<SmiReport> ReadNvidiaSmiCsv(const std::string& path, const ReaderLimits& limits);
absl::StatusOr<SmiReport> ReadNvidiaSmiXml(const std::string& path, const ReaderLimits& limits);

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_READER_H_
