// CSV of `ncu --import ... --page raw|details --csv`, and of ncu's own standard
// output with program output around it.
#include "agents/profiling/readers/ncu_csv.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agents/profiling/readers/csv.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/ncu_names.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/statistics.h"
#include "common/status.h"
#include "common/text.h"
#include "common/units.h"

namespace solward::readers {
namespace {

// Shares of peak may pass 100 % a little (clocks above the nominal one), never
// by this much.
constexpr double kMostPercentOfPeak = 200;
constexpr double kLongestKernelNs = 86'400e9;

// What the counter of this name can be on any hardware.
bool IsPossible(absl::string_view name, double value) {
  if (absl::StrContains(name, "pct_of_peak")) return value >= 0 && value <= kMostPercentOfPeak;
  if (absl::StartsWith(name, "gpu__time_duration")) return value > 0 && value <= kLongestKernelNs;
  return true;
}

// A CSV export of thousands of launches is some 100 MB.
constexpr uint64_t kMaxCsvBytes = 2ull << 30;
// What a value costs in the model: a map node, its key and unit.
constexpr uint64_t kBytesPerValue = 200;

constexpr std::array<absl::string_view, 14> kIdentityColumns = {
    "ID",          "Process ID", "Process Name", "Host Name",   "Kernel Name",
    "Kernel Time", "Context",    "Stream",       "Block Size",  "Grid Size",
    "Device",      "CC",         "Thread ID",    "Section Name"};

bool IsIdentityColumn(absl::string_view name) {
  return std::find(kIdentityColumns.begin(), kIdentityColumns.end(), name) !=
             kIdentityColumns.end() ||
         absl::StrContains(name, "Push/Pop_Range") || absl::StrContains(name, "Start/Stop_Range");
}

constexpr size_t kNoColumn = static_cast<size_t>(-1);

// Columns by name, and the cells of one record by column name.
class Header {
 public:
  explicit Header(std::vector<std::string> names) : names_(std::move(names)) {}
  size_t Find(absl::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    return found == names_.end() ? kNoColumn : static_cast<size_t>(found - names_.begin());
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

absl::string_view Cell(const std::vector<std::string>& record, size_t column) {
  return column < record.size() ? absl::string_view(record[column]) : absl::string_view();
}

void ParseDimensions(absl::string_view text, uint32_t (&dimensions)[3]) {
  size_t i = 0;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("(), "), absl::SkipEmpty())) {
    uint32_t value = 0;
    if (i == 3 || !absl::SimpleAtoi(part, &value)) return;
    dimensions[i++] = value;
  }
}

// One file on its way into a CounterReport.
class Parser {
 public:
  Parser(std::string label, absl::string_view text, const ReaderLimits& limits)
      : label_(std::move(label)), text_(text), limits_(limits) {}

  absl::StatusOr<CounterReport> Parse();

 private:
  struct Columns {
    size_t id, process, kernel, device, cc, block, grid;
    size_t section, name, unit, value;
    size_t rule, rule_type, rule_text, speedup_type, speedup;
  };

  absl::Status ReadRecords(absl::string_view body);
  absl::Status DecideNumberStyle();
  absl::Status ParseRaw();
  absl::Status ParseDetails();
  void AddValue(const std::string& name, CounterValue value, CounterLaunch* launch);
  // A cell that is no number: text, or a number beyond what a double holds.
  void AddText(const std::string& name, absl::string_view text, CounterLaunch* launch);
  void CountImpossible();
  void ReadRawCell(size_t column, const UnitScale& unit, absl::string_view text,
                   CounterLaunch* launch);
  void ReadDetailsRow(const std::vector<std::string>& record, CounterLaunch* launch);
  void ReadRule(const std::vector<std::string>& record, int64_t id);
  CounterLaunch StartLaunch(const std::vector<std::string>& record, int64_t id);
  void ReadGpuProperties();
  absl::Status ChargeValue();
  bool IsForeign(const std::vector<std::string>& record, int64_t* id);

  const std::string label_;
  const absl::string_view text_;
  const ReaderLimits& limits_;
  NcuPage page_ = NcuPage::kNone;
  Header header_{{}};
  Columns columns_ = {};
  std::vector<std::string> units_;
  std::vector<std::vector<std::string>> records_;
  bool decimal_comma_ = false;
  uint64_t model_bytes_ = 0;
  Statistics statistics_;
  std::map<std::string, UnitScale, std::less<>> unit_cache_;
  CounterReport report_;
};

absl::StatusOr<CounterReport> Parser::Parse() {
  const size_t start = FindNcuHeader(text_);
  if (start == absl::string_view::npos) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNKNOWN",
                     absl::StrCat(label_,
                                  ": no header line of an ncu CSV (\"ID\",\"Process ID\",...)"
                                  " was found; export with --csv and --page raw"));
  }
  statistics_.Count("ncu_lines_before_header", v1::PARSE_SEVERITY_INFO,
                    "Program output and messages of the tool before the CSV header.",
                    static_cast<uint64_t>(std::count(
                        text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(start), '\n')));
  RETURN_IF_ERROR(ReadRecords(text_.substr(start)));
  RETURN_IF_ERROR(DecideNumberStyle());
  report_.table = page_ == NcuPage::kRaw ? "raw" : "details";
  RETURN_IF_ERROR(page_ == NcuPage::kRaw ? ParseRaw() : ParseDetails());
  if (report_.launches.empty()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "CAPTURE_HAS_NO_KERNELS",
                     absl::StrCat(label_,
                                  ": the ncu export holds no kernel launch; the kernel "
                                  "filter of the recording matched nothing or the program "
                                  "launched no kernel"));
  }
  ReadGpuProperties();
  report_.statistics = statistics_.Take();
  return std::move(report_);
}

// A line that the program printed between records: no kernel row of a quoted
// export starts without a quote, none of any export without an integer ID.
bool Parser::IsForeign(const std::vector<std::string>& record, int64_t* id) {
  return record.size() < 4 || !absl::SimpleAtoi(record[0], id);
}

absl::Status Parser::ReadRecords(absl::string_view body) {
  CsvRecords reader(body);
  const bool quoted = reader.Peek() == '"';
  std::vector<std::string> record;
  reader.Next(&record);
  page_ = NcuPageOfHeader(record);
  header_ = Header(record);
  if (page_ == NcuPage::kSummary) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNSUPPORTED",
                     absl::StrCat(label_,
                                  ": a summary over launches, which has no single launches; "
                                  "export it again with --page raw and no --print-summary"));
  }
  absl::string_view line;
  uint64_t foreign = 0, repeated = 0;
  while (reader.Peek() != '\0') {
    if (quoted && reader.Peek() != '"') {
      reader.NextLine(&line);
      if (!absl::StripAsciiWhitespace(line).empty()) ++foreign;
      continue;
    }
    reader.Next(&record);
    int64_t id = 0;
    if (record == header_.names()) {
      ++repeated;
    } else if (page_ == NcuPage::kRaw && units_.empty() && records_.empty() &&
               Cell(record, 0).empty()) {
      units_ = record;
    } else if (IsForeign(record, &id)) {
      ++foreign;
    } else if (records_.size() >= limits_.max_entries) {
      return MakeError(
          absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
          absl::StrCat(label_, ": more than ", limits_.max_entries, " rows (limit max_entries)"));
    } else {
      records_.push_back(record);
    }
  }
  statistics_.Count("ncu_foreign_lines", v1::PARSE_SEVERITY_INFO,
                    "Lines between the rows that are not rows of the export.", foreign);
  statistics_.Count("ncu_repeated_headers", v1::PARSE_SEVERITY_INFO,
                    "Header lines after the first one.", repeated);
  if (reader.unterminated()) {
    statistics_.Count("ncu_truncated_row", v1::PARSE_SEVERITY_DATA_LOSS,
                      "The file ends inside a quoted field; its last row is incomplete.");
  }
  return absl::OkStatus();
}

absl::Status Parser::DecideNumberStyle() {
  NumberStyle style;
  const size_t value = header_.Find("Metric Value");
  const size_t speedup = header_.Find("Estimated Speedup");
  for (const auto& record : records_) {
    if (page_ == NcuPage::kDetails) {
      style.See(Cell(record, value));
      style.See(Cell(record, speedup));
      continue;
    }
    for (size_t i = 0; i < record.size() && i < header_.names().size(); ++i) {
      if (!IsIdentityColumn(header_.names()[i])) style.See(record[i]);
    }
  }
  ASSIGN_OR_RETURN(decimal_comma_, style.DecimalComma(label_));
  return absl::OkStatus();
}

CounterLaunch Parser::StartLaunch(const std::vector<std::string>& record, int64_t id) {
  CounterLaunch launch;
  launch.id = id;
  launch.kernel = CleanUtf8(Cell(record, columns_.kernel));
  if (!absl::SimpleAtoi(Cell(record, columns_.device), &launch.device)) launch.device = 0;
  ParseDimensions(Cell(record, columns_.grid), launch.grid);
  ParseDimensions(Cell(record, columns_.block), launch.block);
  if (columns_.cc != kNoColumn) launch.texts.emplace("CC", Cell(record, columns_.cc));
  if (report_.process_name.empty()) {
    report_.process_name = CleanUtf8(Cell(record, columns_.process));
  }
  return launch;
}

absl::Status Parser::ChargeValue() {
  model_bytes_ += kBytesPerValue;
  if (model_bytes_ <= limits_.max_model_bytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
                   absl::StrCat(label_, ": more than ", limits_.max_model_bytes,
                                " bytes of metric values (limit max_model_bytes); export fewer "
                                "launches or metrics"));
}

void Parser::AddValue(const std::string& name, CounterValue value, CounterLaunch* launch) {
  if (IsPossible(name, value.value)) {
    launch->values.emplace(name, std::move(value));
    return;
  }
  CountImpossible();
}

void Parser::AddText(const std::string& name, absl::string_view text, CounterLaunch* launch) {
  const bool number = !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
                      text.find_first_not_of("0123456789.,+-eE") == absl::string_view::npos;
  if (number) {
    CountImpossible();
  } else {
    launch->texts.emplace(name, CleanUtf8(text));
  }
}

void Parser::CountImpossible() {
  statistics_.Count("ncu_values_impossible", v1::PARSE_SEVERITY_DATA_LOSS,
                    "Values no hardware gives (beyond a double, a duration that is not positive or "
                    "longer than a day, a share of peak below zero or far above one hundred "
                    "percent); not used. Export the report again.");
}

void Parser::ReadRawCell(size_t column, const UnitScale& unit, absl::string_view text,
                         CounterLaunch* launch) {
  const std::string& name = header_.names()[column];
  if (IsNoValue(text)) {
    // launch__kernel_name and the like are empty where they do not apply.
    if (!text.empty()) {
      statistics_.Count("ncu_values_missing", v1::PARSE_SEVERITY_INFO,
                        "Cells the tool left without a value (no data, n/a, nan).");
    }
    return;
  }
  if (const std::optional<double> number = PrintedNumber(text, decimal_comma_)) {
    AddValue(name, CounterValue{*number * unit.scale, unit.unit, unit.scale}, launch);
  } else {
    AddText(name, text, launch);
  }
}

absl::Status Parser::ParseRaw() {
  columns_ = {};
  columns_.process = header_.Find("Process Name");
  columns_.kernel = header_.Find("Kernel Name");
  columns_.device = header_.Find("Device");
  columns_.cc = header_.Find("CC");
  columns_.block = header_.Find("Block Size");
  columns_.grid = header_.Find("Grid Size");
  std::vector<size_t> metric_columns;
  std::vector<UnitScale> units(header_.names().size());
  for (size_t i = 0; i < header_.names().size(); ++i) {
    units[i] = ToBaseUnit(Cell(units_, i));
    if (!IsIdentityColumn(header_.names()[i])) metric_columns.push_back(i);
  }
  std::set<int64_t> seen;
  for (const auto& record : records_) {
    int64_t id = 0;
    if (IsForeign(record, &id)) continue;
    if (!seen.insert(id).second) {
      statistics_.Count("ncu_duplicate_launch_ids", v1::PARSE_SEVERITY_DATA_LOSS,
                        "Launches whose ID occurred before; dropped. Give each export as a file "
                        "of its own.");
      continue;
    }
    if (record.size() < header_.names().size()) {
      statistics_.Count("ncu_short_rows", v1::PARSE_SEVERITY_DATA_LOSS,
                        "Rows with fewer cells than the header has columns.");
    }
    CounterLaunch launch = StartLaunch(record, id);
    for (size_t column : metric_columns) {
      if (column >= record.size()) break;
      RETURN_IF_ERROR(ChargeValue());
      ReadRawCell(column, units[column], record[column], &launch);
    }
    report_.launches.push_back(std::move(launch));
  }
  return absl::OkStatus();
}

void Parser::ReadRule(const std::vector<std::string>& record, int64_t id) {
  CounterRule rule;
  rule.launch_id = id;
  rule.section = CleanUtf8(Cell(record, columns_.section));
  rule.rule = CleanUtf8(Cell(record, columns_.rule));
  rule.type = CleanUtf8(Cell(record, columns_.rule_type));
  rule.text = Truncate(CleanUtf8(Cell(record, columns_.rule_text)), 4096);
  rule.speedup_type = CleanUtf8(Cell(record, columns_.speedup_type));
  const absl::string_view speedup = Cell(record, columns_.speedup);
  if (!IsNoValue(speedup)) {
    rule.estimated_speedup_percent = PrintedNumber(speedup, decimal_comma_).value_or(-1);
  }
  report_.rules.push_back(std::move(rule));
}

void Parser::ReadDetailsRow(const std::vector<std::string>& record, CounterLaunch* launch) {
  const absl::string_view name = Cell(record, columns_.name);
  const absl::string_view text = Cell(record, columns_.value);
  const std::string printed = absl::StrCat(Cell(record, columns_.section), "/", name);
  absl::string_view raw = BuiltInNcuNames().RawName(printed);
  // Metrics asked for by name are printed under it, in a section of their own.
  if (raw.empty() && absl::StrContains(name, "__")) raw = name;
  const std::string key = raw.empty() ? printed : std::string(raw);
  if (IsNoValue(text)) {
    statistics_.Count("ncu_values_missing", v1::PARSE_SEVERITY_INFO,
                      "Cells the tool left without a value (no data, n/a, nan).");
    return;
  }
  if (launch->values.count(key) != 0 || launch->texts.count(key) != 0) {
    statistics_.Count("ncu_repeated_metrics", v1::PARSE_SEVERITY_INFO,
                      "Metrics that a launch prints twice; the first one counts.");
    return;
  }
  const absl::string_view unit_text = Cell(record, columns_.unit);
  auto unit = unit_cache_.find(unit_text);
  if (unit == unit_cache_.end()) {
    unit = unit_cache_.emplace(std::string(unit_text), ToBaseUnit(unit_text)).first;
  }
  if (const std::optional<double> number = PrintedNumber(text, decimal_comma_)) {
    const UnitScale& scale = unit->second;
    AddValue(key, CounterValue{*number * scale.scale, scale.unit, scale.scale}, launch);
  } else {
    AddText(key, text, launch);
  }
  if (key != printed) launch->printed_names.emplace(key, printed);
}

absl::Status Parser::ParseDetails() {
  columns_ = {0,
              header_.Find("Process Name"),
              header_.Find("Kernel Name"),
              header_.Find("Device"),
              header_.Find("CC"),
              header_.Find("Block Size"),
              header_.Find("Grid Size"),
              header_.Find("Section Name"),
              header_.Find("Metric Name"),
              header_.Find("Metric Unit"),
              header_.Find("Metric Value"),
              header_.Find("Rule Name"),
              header_.Find("Rule Type"),
              header_.Find("Rule Description"),
              header_.Find("Estimated Speedup Type"),
              header_.Find("Estimated Speedup")};
  std::map<int64_t, size_t> index;
  for (const auto& record : records_) {
    int64_t id = 0;
    if (IsForeign(record, &id)) continue;
    RETURN_IF_ERROR(ChargeValue());
    auto [found, inserted] = index.emplace(id, report_.launches.size());
    if (inserted) report_.launches.push_back(StartLaunch(record, id));
    CounterLaunch& launch = report_.launches[found->second];
    if (launch.kernel != CleanUtf8(Cell(record, columns_.kernel))) {
      statistics_.Count("ncu_duplicate_launch_ids", v1::PARSE_SEVERITY_DATA_LOSS,
                        "Rows whose ID belongs to another kernel; dropped. Give each export as a "
                        "file of its own.");
      continue;
    }
    if (!Cell(record, columns_.name).empty()) {
      ReadDetailsRow(record, &launch);
    } else if (!Cell(record, columns_.rule).empty()) {
      ReadRule(record, id);
    } else {
      statistics_.Count("ncu_rows_without_content", v1::PARSE_SEVERITY_DATA_LOSS,
                        "Rows with neither a metric nor a rule.");
    }
  }
  return absl::OkStatus();
}

void Parser::ReadGpuProperties() {
  std::set<int32_t> seen;
  for (const CounterLaunch& launch : report_.launches) {
    if (!seen.insert(launch.device).second) continue;
    // Beyond `most` it is no property of a device: 0, not told.
    const auto number = [&](absl::string_view name, double most) {
      const auto found = launch.values.find(name);
      if (found == launch.values.end()) return 0.0;
      const double value = found->second.value;
      return value >= 0 && value <= most ? value : 0.0;
    };
    v1::Gpu gpu;
    gpu.set_device(launch.device);
    const auto name = launch.texts.find("device__attribute_display_name");
    if (name != launch.texts.end()) gpu.set_name(name->second);
    gpu.set_compute_major(
        static_cast<uint32_t>(number("device__attribute_compute_capability_major", 1e5)));
    gpu.set_compute_minor(
        static_cast<uint32_t>(number("device__attribute_compute_capability_minor", 1e5)));
    const auto cc = launch.texts.find("CC");
    if (gpu.compute_major() == 0 && cc != launch.texts.end()) {
      const std::vector<absl::string_view> parts = absl::StrSplit(cc->second, '.');
      uint32_t major = 0, minor = 0;
      if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &major) &&
          absl::SimpleAtoi(parts[1], &minor)) {
        gpu.set_compute_major(major);
        gpu.set_compute_minor(minor);
      }
    }
    gpu.set_sm_count(static_cast<uint32_t>(number("device__attribute_multiprocessor_count", 1e5)));
    if (gpu.sm_count() == 0)
      gpu.set_sm_count(static_cast<uint32_t>(number("launch__sm_count", 1e5)));
    gpu.set_memory_bytes(static_cast<uint64_t>(number("device__attribute_total_memory", 1e16)));
    // kHz; twice the memory clock times the bus width, as CUDA defines it.
    const double memory_khz = number("device__attribute_memory_clock_rate", 1e9);
    const double bus_bits = number("device__attribute_global_memory_bus_width", 1e5);
    gpu.set_memory_bandwidth(static_cast<uint64_t>(2e3 * memory_khz * bus_bits / 8));
    gpu.set_max_sm_clock_hz(
        static_cast<uint64_t>(1e3 * number("device__attribute_clock_rate", 1e9)));
    report_.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

NcuPage NcuPageOfHeader(const std::vector<std::string>& header) {
  const auto has = [&](absl::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  };
  if (has("Invocations") && has("Metric Name")) return NcuPage::kSummary;
  if (header.empty() || header[0] != "ID" || !has("Kernel Name")) return NcuPage::kNone;
  if (has("Section Name") && has("Metric Name") && has("Metric Value")) return NcuPage::kDetails;
  if (has("Metric Name") && has("Metric Value")) return NcuPage::kDetails;
  return NcuPage::kRaw;
}

size_t FindNcuHeader(absl::string_view text) {
  std::vector<std::string> record;
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = text.substr(at);
    if (absl::StartsWith(rest, "\"ID\",") || absl::StartsWith(rest, "ID,") ||
        absl::StartsWith(rest, "\"Process ID\",") || absl::StartsWith(rest, "Process ID,")) {
      CsvRecords reader(rest.substr(0, rest.find('\n')));
      if (reader.Next(&record) && NcuPageOfHeader(record) != NcuPage::kNone) return at;
    }
    const size_t end = text.find('\n', at);
    if (end == absl::string_view::npos) break;
    at = end + 1;
  }
  return absl::string_view::npos;
}

absl::StatusOr<CounterReport> ReadNcuCsv(const std::string& path, const ReaderLimits& limits) {
  ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path, limits, kMaxCsvBytes));
  const std::string text = ToUtf8(std::move(bytes));
  return Parser(path.substr(path.find_last_of('/') + 1), text, limits).Parse();
}

}  // namespace solward::readers
