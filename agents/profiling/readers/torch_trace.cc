// Traces of torch.profiler (Kineto, 2020 to 2026, CUDA and ROCm). Times of the
// timeline are the events' own "ts" in ns, without "baseTimeNanoseconds".
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agents/profiling/readers/decimal.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/trace_event_stream.h"
#include "agents/profiling/timeline/timeline_builder.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

using timeline::GpuOpKind;
using timeline::HostMemory;
using timeline::NameId;
namespace ondemand = simdjson::ondemand;

enum class Category { kNone, kKernel, kMemcpy, kMemset, kCall, kAnnotation, kCpuOp };

struct CategoryName {
  absl::string_view name;
  Category category;
};

// As written since 2022, and before. Ranges of the GPU track
// (gpu_user_annotation) repeat those of the CPU and are not wanted; nor is
// cuda_sync, which repeats calls that are here by name.
constexpr CategoryName kCategories[] = {
    {"kernel", Category::kKernel},
    {"gpu_memcpy", Category::kMemcpy},
    {"gpu_memset", Category::kMemset},
    {"cuda_runtime", Category::kCall},
    {"cuda_driver", Category::kCall},
    {"hip_runtime", Category::kCall},
    {"user_annotation", Category::kAnnotation},
    {"cpu_op", Category::kCpuOp},
    {"Kernel", Category::kKernel},
    {"Memcpy", Category::kMemcpy},
    {"Memset", Category::kMemset},
    {"Runtime", Category::kCall},
    {"Operator", Category::kCpuOp},
};

Category CategoryOf(absl::string_view name) {
  for (const CategoryName& c : kCategories) {
    if (c.name == name) return c.category;
  }
  return Category::kNone;
}

bool IsGpu(Category c) {
  return c == Category::kKernel || c == Category::kMemcpy || c == Category::kMemset;
}

// Consumes `token` after white space.
bool Consume(absl::string_view* text, absl::string_view token) {
  *text = absl::StripLeadingAsciiWhitespace(*text);
  return absl::ConsumePrefix(text, token);
}

// Whether the event certainly is of no use, by its first members alone: Kineto
// writes "ph", "cat" and "name" first, and most events are operators and flows.
// Whatever looks different is parsed.
bool IsUseless(absl::string_view event) {
  if (!Consume(&event, "{") || !Consume(&event, "\"ph\"") || !Consume(&event, ":")) return false;
  if (!Consume(&event, "\"X\"")) return Consume(&event, "\"") && !absl::StartsWith(event, "\\");
  if (!Consume(&event, ",") || !Consume(&event, "\"cat\"") || !Consume(&event, ":") ||
      !Consume(&event, "\"")) {
    return false;
  }
  const size_t quote = event.find_first_of("\"\\");
  if (quote == absl::string_view::npos || event[quote] == '\\') return false;
  const Category category = CategoryOf(event.substr(0, quote));
  if (category == Category::kNone) return true;
  if (category != Category::kCpuOp) return false;
  event.remove_prefix(quote + 1);
  if (!Consume(&event, ",") || !Consume(&event, "\"name\"") || !Consume(&event, ":")) return false;
  return !Consume(&event, "\"ProfilerStep");
}

// What of an event is used. Numbers are JSON tokens, maybe quoted; views are
// valid until the next event.
struct Event {
  absl::string_view ph, category, name;
  absl::string_view pid, tid, ts, dur;
  absl::string_view device, stream, correlation, bytes, graph_node;
};

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// `text` must have kPadding readable bytes behind it.
class EventParser {
 public:
  simdjson::error_code Parse(absl::string_view text, Event* event) {
    *event = Event();
    ondemand::document document;
    SIMDJSON_TRY(parser_.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING)
                     .get(document));
    ondemand::object object;
    SIMDJSON_TRY(document.get_object().get(object));
    for (auto member : object) {
      ondemand::raw_json_string key;
      ondemand::value value;
      SIMDJSON_TRY(member.key().get(key));
      SIMDJSON_TRY(member.value().get(value));
      SIMDJSON_TRY(Take(key, value, event));
    }
    return simdjson::SUCCESS;
  }

 private:
  static simdjson::error_code Text(ondemand::value& value, absl::string_view* to) {
    std::string_view text;
    ondemand::json_type type;
    SIMDJSON_TRY(value.type().get(type));
    if (type != ondemand::json_type::string) return simdjson::SUCCESS;
    SIMDJSON_TRY(value.get_string().get(text));
    *to = ToAbsl(text);
    return simdjson::SUCCESS;
  }

  static simdjson::error_code Take(ondemand::raw_json_string key, ondemand::value& value,
                                   Event* event) {
    if (key == "ph") return Text(value, &event->ph);
    if (key == "cat") return Text(value, &event->category);
    if (key == "name") return Text(value, &event->name);
    if (key == "ts") event->ts = ToAbsl(value.raw_json_token());
    if (key == "dur") event->dur = ToAbsl(value.raw_json_token());
    if (key == "pid") event->pid = ToAbsl(value.raw_json_token());
    if (key == "tid") event->tid = ToAbsl(value.raw_json_token());
    if (key == "args") return Arguments(value, event);
    return simdjson::SUCCESS;
  }

  static simdjson::error_code Arguments(ondemand::value& value, Event* event) {
    ondemand::json_type type;
    SIMDJSON_TRY(value.type().get(type));
    if (type != ondemand::json_type::object) return simdjson::SUCCESS;
    ondemand::object object;
    SIMDJSON_TRY(value.get_object().get(object));
    for (auto member : object) {
      ondemand::raw_json_string key;
      ondemand::value argument;
      SIMDJSON_TRY(member.key().get(key));
      SIMDJSON_TRY(member.value().get(argument));
      absl::string_view* to = nullptr;
      if (key == "correlation") to = &event->correlation;
      if (key == "device") to = &event->device;
      if (key == "stream") to = &event->stream;
      if (key == "bytes") to = &event->bytes;
      if (key == "graph node id") to = &event->graph_node;
      if (to != nullptr) *to = ToAbsl(argument.raw_json_token());
    }
    return simdjson::SUCCESS;
  }

  ondemand::parser parser_;
};

// "stream 7" -> 7.
int64_t TrailingNumber(absl::string_view token, int64_t otherwise) {
  token = Unquoted(token);
  size_t digits = token.size();
  while (digits > 0 && absl::ascii_isdigit(token[digits - 1])) --digits;
  return DecimalToInteger(token.substr(digits), 0).value_or(otherwise);
}

int64_t Correlation(const Event& event) {
  return DecimalToInteger(Unquoted(event.correlation), 0).value_or(timeline::kNoCorrelation);
}

class TorchReader {
 public:
  TorchReader(InputFile& input, const ReaderLimits& limits)
      : label_(input.label()),
        limits_(limits),
        stream_(
            input, limits,
            {"deviceProperties", "computeProperties", "distributedInfo", "baseTimeNanoseconds"}),
        builder_("torch.profiler", limits.max_model_bytes) {
    timeline::Timeline& t = builder_.timeline();
    t.kernel_table = t.copy_table = t.memset_table = t.call_table = t.range_table = "traceEvents";
  }

  absl::StatusOr<timeline::Timeline> Read();

 private:
  absl::Status ReadEvent();
  absl::Status Add(const Event& event, Category category);
  absl::Status AddGpuOp(const Event& event, Category category, int64_t start_ns, int64_t end_ns);
  void ReadMember();
  void ReadDevices(absl::string_view text);
  void NoteFaults();
  NameId Name(absl::string_view name);
  uint32_t Row() const;

  const std::string label_;
  const ReaderLimits limits_;
  TraceEventStream stream_;
  timeline::TimelineBuilder builder_;
  EventParser parser_;
  ondemand::parser member_parser_;
  std::unordered_map<NameId, GpuOpKind> kernel_kinds_;
  // Name without version suffix, and kind, by the name as printed.
  std::unordered_map<NameId, std::pair<NameId, timeline::ApiKind>> calls_by_name_;
  std::string repaired_;
  int32_t rank_ = -1;
  uint64_t calls_ = 0;
};

absl::StatusOr<timeline::Timeline> TorchReader::Read() {
  while (true) {
    ASSIGN_OR_RETURN(const TraceEventStream::Item item, stream_.Next());
    if (item == TraceEventStream::Item::kEnd) break;
    if (item == TraceEventStream::Item::kMember) {
      ReadMember();
      continue;
    }
    if (stream_.events() > limits_.max_entries) {
      return MakeError(
          absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
          absl::StrCat(label_, ": expected at most ", limits_.max_entries, " events, found more"));
    }
    if (!IsUseless(stream_.text())) RETURN_IF_ERROR(ReadEvent());
  }
  if (!stream_.has_trace_events() ||
      (stream_.events() > 0 && stream_.broken_events() == stream_.events())) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_MISMATCH",
                     absl::StrCat(label_,
                                  ": expected a torch.profiler trace, JSON with events in "
                                  "\"traceEvents\"; found ",
                                  stream_.has_trace_events() ? "no complete event" : "none"));
  }
  NoteFaults();
  ASSIGN_OR_RETURN(timeline::Timeline result, std::move(builder_).Build());
  for (timeline::Process& process : result.processes) process.rank = rank_;
  return result;
}

absl::Status TorchReader::ReadEvent() {
  Event event;
  simdjson::error_code error = parser_.Parse(stream_.text(), &event);
  if (error != simdjson::SUCCESS) {
    // Control characters and bytes that are not UTF-8 stand in names that
    // user code made up; without them the event may be sound.
    repaired_ = CleanUtf8(stream_.text());
    for (char& c : repaired_) {
      if (c == '\n' || c == '\t') c = ' ';
    }
    const size_t size = repaired_.size();
    repaired_.resize(size + TraceEventStream::kPadding);
    error = parser_.Parse({repaired_.data(), size}, &event);
    if (error != simdjson::SUCCESS) {
      stream_.RejectEvent();
      return absl::OkStatus();
    }
    builder_.Count("events_repaired", v1::PARSE_SEVERITY_INFO,
                   "events with control characters or bytes that are not UTF-8, replaced");
  }
  if (event.ph != "X") return absl::OkStatus();
  const Category category = CategoryOf(event.category);
  if (category == Category::kNone) return absl::OkStatus();
  // Until 2022 steps were operators.
  if (category == Category::kCpuOp && !absl::StartsWith(event.name, "ProfilerStep")) {
    return absl::OkStatus();
  }
  return Add(event, category);
}

uint32_t TorchReader::Row() const {
  return stream_.index() < timeline::kNone ? static_cast<uint32_t>(stream_.index())
                                           : timeline::kNone;
}

NameId TorchReader::Name(absl::string_view name) {
  if (name.size() > limits_.max_string_bytes) {
    builder_.Count("strings_cut", v1::PARSE_SEVERITY_INFO,
                   absl::StrCat("names longer than ", limits_.max_string_bytes, " bytes, cut"));
    return builder_.names().Intern(CleanUtf8(name.substr(0, limits_.max_string_bytes)));
  }
  const bool control =
      std::any_of(name.begin(), name.end(), [](char c) { return absl::ascii_iscntrl(c); });
  return control ? builder_.names().Intern(CleanUtf8(name)) : builder_.names().Intern(name);
}

absl::Status TorchReader::Add(const Event& event, Category category) {
  // Microseconds with up to three decimals, which a double cannot hold for
  // times since 1970.
  const std::optional<int64_t> start = DecimalToInteger(Unquoted(event.ts), 3);
  const std::optional<int64_t> duration = DecimalToInteger(Unquoted(event.dur), 3);
  if (!start || !duration || *start > timeline::kMaxTimeNs ||
      *duration > timeline::kMaxDurationNs) {
    builder_.Count("events_with_bad_number", v1::PARSE_SEVERITY_DATA_LOSS,
                   "events of GPU work, calls or ranges whose ts or dur is missing, is no finite "
                   "number or is beyond any clock");
    return absl::OkStatus();
  }
  const int64_t end = *start + *duration;
  if (IsGpu(category)) return AddGpuOp(event, category, *start, end);
  const auto process = static_cast<uint32_t>(TrailingNumber(event.pid, 0));
  const int64_t thread = TrailingNumber(event.tid, 0);
  const NameId name = Name(event.name);
  if (category != Category::kCall) {
    return builder_.AddRange({.process = process,
                              .thread = thread,
                              .start_ns = *start,
                              .end_ns = end,
                              .name = name,
                              .row = Row()});
  }
  auto [it, is_new] = calls_by_name_.try_emplace(name);
  if (is_new) {
    const std::string stripped(timeline::StripApiVersion(event.name));
    it->second = {builder_.names().Intern(stripped), timeline::ClassifyApiName(stripped)};
  }
  ++calls_;
  return builder_.AddCall({.process = process,
                           .thread = thread,
                           .start_ns = *start,
                           .end_ns = end,
                           .correlation = Correlation(event),
                           .name = it->second.first,
                           .row = Row(),
                           .kind = it->second.second});
}

absl::Status TorchReader::AddGpuOp(const Event& event, Category category, int64_t start_ns,
                                   int64_t end_ns) {
  timeline::OpRow op;
  op.start_ns = start_ns;
  op.end_ns = end_ns;
  op.row = Row();
  op.name = Name(event.name);
  op.correlation = Correlation(event);
  const int64_t device = TrailingNumber(event.device.empty() ? event.pid : event.device, -1);
  op.device = device > INT32_MAX ? -1 : static_cast<int32_t>(device);
  op.stream =
      static_cast<uint32_t>(TrailingNumber(event.stream.empty() ? event.tid : event.stream, 0));
  op.bytes = static_cast<uint64_t>(
      std::max<int64_t>(0, DecimalToInteger(Unquoted(event.bytes), 0).value_or(0)));
  // 0 means "not in a graph". Older traces give no id; the builder then tells
  // by the launching call.
  op.in_graph = DecimalToInteger(Unquoted(event.graph_node), 0).value_or(0) != 0;
  if (category == Category::kKernel) {
    auto [it, is_new] = kernel_kinds_.try_emplace(op.name);
    if (is_new) it->second = timeline::ClassifyKernelName(builder_.names().Name(op.name));
    op.kind = it->second;
    return builder_.AddOp(op);
  }
  if (category == Category::kMemset) {
    op.kind = GpuOpKind::kMemset;
    return builder_.AddOp(op);
  }
  if (absl::StrContains(event.name, "HtoH")) {
    builder_.Count("copies_host_to_host", v1::PARSE_SEVERITY_INFO,
                   "copies between host buffers, which take no GPU time");
    return absl::OkStatus();
  }
  op.kind = absl::StrContains(event.name, "HtoD")   ? GpuOpKind::kCopyHostToDevice
            : absl::StrContains(event.name, "DtoH") ? GpuOpKind::kCopyDeviceToHost
                                                    : GpuOpKind::kCopyDeviceToDevice;
  if (op.kind != GpuOpKind::kCopyDeviceToDevice) {
    if (absl::StrContains(event.name, "Pageable")) op.host_memory = HostMemory::kPageable;
    if (absl::StrContains(event.name, "Pinned")) op.host_memory = HostMemory::kPinned;
  }
  return builder_.AddOp(op);
}

void TorchReader::ReadMember() {
  const absl::string_view key = stream_.key();
  if (key == "baseTimeNanoseconds") {
    builder_.timeline().clock_base_ns = DecimalToInteger(Unquoted(stream_.text()), 0).value_or(0);
    return;
  }
  if (key != "distributedInfo") return ReadDevices(stream_.text());
  ondemand::document document;
  int64_t rank = -1;
  if (member_parser_
          .iterate(stream_.text().data(), stream_.text().size(),
                   stream_.text().size() + simdjson::SIMDJSON_PADDING)
          .get(document) != simdjson::SUCCESS) {
    builder_.Count("metadata_unreadable", v1::PARSE_SEVERITY_DATA_LOSS,
                   "members of the trace that describe devices or ranks and are no JSON");
    return;
  }
  std::string_view token;
  if (document["rank"].raw_json_token().get(token) == simdjson::SUCCESS) {
    rank = DecimalToInteger(Unquoted(ToAbsl(token)), 0).value_or(-1);
  }
  if (rank >= 0 && rank <= INT32_MAX) rank_ = static_cast<int32_t>(rank);
}

void TorchReader::ReadDevices(absl::string_view text) {
  ondemand::document document;
  ondemand::array devices;
  if (member_parser_.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING)
              .get(document) != simdjson::SUCCESS ||
      document.get_array().get(devices) != simdjson::SUCCESS) {
    builder_.Count("metadata_unreadable", v1::PARSE_SEVERITY_DATA_LOSS,
                   "members of the trace that describe devices or ranks and are no JSON");
    return;
  }
  for (auto element : devices) {
    ondemand::object object;
    if (element.get_object().get(object) != simdjson::SUCCESS) return;
    v1::Gpu gpu;
    for (auto member : object) {
      ondemand::raw_json_string key;
      std::string_view token;
      if (member.key().get(key) != simdjson::SUCCESS ||
          member.value().raw_json_token().get(token) != simdjson::SUCCESS) {
        return;
      }
      const absl::string_view plain = Unquoted(ToAbsl(token));
      const int64_t number = std::max<int64_t>(0, DecimalToInteger(plain, 0).value_or(0));
      if (key == "id") gpu.set_device(static_cast<int32_t>(number));
      if (key == "name") gpu.set_name(CleanUtf8(plain.substr(0, 256)));
      if (key == "totalGlobalMem") gpu.set_memory_bytes(static_cast<uint64_t>(number));
      if (key == "computeMajor" || key == "major") {
        gpu.set_compute_major(static_cast<uint32_t>(number));
      }
      if (key == "computeMinor" || key == "minor") {
        gpu.set_compute_minor(static_cast<uint32_t>(number));
      }
      if (key == "numSms" || key == "multiProcessorCount") {
        gpu.set_sm_count(static_cast<uint32_t>(number));
      }
    }
    builder_.timeline().gpus.push_back(std::move(gpu));
  }
}

void TorchReader::NoteFaults() {
  builder_.Count("events_broken", v1::PARSE_SEVERITY_DATA_LOSS,
                 "elements of traceEvents that are no complete JSON object",
                 stream_.broken_events());
  builder_.Count("stray_bytes", v1::PARSE_SEVERITY_INFO,
                 "brackets and colons between events that belong to none", stream_.stray_bytes());
  if (stream_.truncated()) {
    builder_.Count("trace_truncated", v1::PARSE_SEVERITY_DATA_LOSS,
                   "the trace ends before its closing bracket; the events before were used");
  }
  if (builder_.ops() == 0) {
    builder_.Count("no_gpu_operations", v1::PARSE_SEVERITY_ERROR,
                   "the trace has no kernel, copy or memset: profiled without CUDA activities, "
                   "or nothing ran on a GPU");
  } else if (calls_ == 0) {
    builder_.Count("no_api_calls", v1::PARSE_SEVERITY_ERROR,
                   "the trace has no CUDA API calls: the cause of idle GPU time is not known");
  }
}

}  // namespace

absl::StatusOr<timeline::Timeline> ReadTorchTrace(const std::string& path,
                                                  const ReaderLimits& limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, InputFile::Open(path, limits));
  return TorchReader(*input, limits).Read();
}

}  // namespace solward::readers
