// SQLite exports of Nsight Systems, from schema-less ones (2020) to 3.25.
// Tables exist only when they have rows, and columns come and go between
// versions, so that everything is asked for by name and whatever is there is
// used.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/sqlite_capture.h"
#include "agents/profiling/timeline/timeline_builder.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

using timeline::ApiKind;
using timeline::GpuOpKind;
using timeline::HostMemory;
using timeline::NameId;

constexpr int64_t kPidMask = 0xffffff;
constexpr int kPidShift = 24;

// ENUM_NSYS_EVENT_TYPE: NvtxPushPopRange and NvtxStartEndRange.
constexpr int64_t kNvtxPushPop = 59;
constexpr int64_t kNvtxStartEnd = 60;

struct CopyKind {
  int64_t value;
  const char* name;  // in ENUM_CUDA_MEMCPY_OPER, after "CUDA_MEMCPY_KIND_"
  std::optional<GpuOpKind> kind;
};

// Managed memory that migrates moves like any other copy.
constexpr CopyKind kCopyKinds[] = {
    {1, "HTOD", GpuOpKind::kCopyHostToDevice},   {2, "DTOH", GpuOpKind::kCopyDeviceToHost},
    {3, "HTOA", GpuOpKind::kCopyHostToDevice},   {4, "ATOH", GpuOpKind::kCopyDeviceToHost},
    {5, "ATOA", GpuOpKind::kCopyDeviceToDevice}, {6, "ATOD", GpuOpKind::kCopyDeviceToDevice},
    {7, "DTOA", GpuOpKind::kCopyDeviceToDevice}, {8, "DTOD", GpuOpKind::kCopyDeviceToDevice},
    {9, "HTOH", std::nullopt},                   {10, "PTOP", GpuOpKind::kCopyDeviceToDevice},
    {11, "UVM_HTOD", GpuOpKind::kCopyHostToDevice},
    {12, "UVM_DTOH", GpuOpKind::kCopyDeviceToHost},
    {13, "UVM_DTOD", GpuOpKind::kCopyDeviceToDevice},
};

absl::string_view CopyName(GpuOpKind kind) {
  switch (kind) {
    case GpuOpKind::kCopyHostToDevice:
      return "Memcpy HtoD";
    case GpuOpKind::kCopyDeviceToHost:
      return "Memcpy DtoH";
    default:
      return "Memcpy DtoD";
  }
}

class NsysReader {
 public:
  NsysReader(SqliteCapture db, std::string label, const ReaderLimits& limits)
      : db_(std::move(db)),
        label_(std::move(label)),
        limits_(limits),
        builder_("nsys", limits.max_model_bytes) {}

  absl::StatusOr<timeline::Timeline> Read() {
    RETURN_IF_ERROR(CheckIsNsys());
    RETURN_IF_ERROR(ReadMetaData());
    RETURN_IF_ERROR(ReadCalls());
    RETURN_IF_ERROR(ReadKernels());
    RETURN_IF_ERROR(ReadCopies());
    RETURN_IF_ERROR(ReadMemsets());
    RETURN_IF_ERROR(ReadGraphs());
    RETURN_IF_ERROR(ReadRanges());
    RETURN_IF_ERROR(ReadGpus());
    RETURN_IF_ERROR(ReadHowStarted());
    NoteMissing();
    ASSIGN_OR_RETURN(timeline::Timeline result, std::move(builder_).Build());
    AssignRanks(&result);
    return result;
  }

 private:
  absl::Status CheckIsNsys();
  absl::Status ReadMetaData();
  absl::Status ReadCalls();
  absl::Status ReadKernels();
  absl::Status ReadCopies();
  absl::Status ReadMemsets();
  absl::Status ReadGraphs();
  absl::Status ReadRanges();
  absl::Status ReadGpus();
  absl::Status ReadHowStarted();
  void NoteMissing();
  void AssignRanks(timeline::Timeline* result);

  // `table` or, when there is none, its newest "_V2", "_V3", ... form; empty
  // when neither exists.
  std::string Find(const std::string& table);
  // Whether the table has the columns without which its rows mean nothing.
  absl::StatusOr<bool> Usable(const std::string& table, const std::vector<std::string>& required);
  absl::Status CountEntry();
  absl::StatusOr<NameId> String(int64_t id);
  absl::StatusOr<std::string> Text(int64_t id);
  // Runs `row` for each row of the table.
  template <typename Row>
  absl::Status ForEach(const std::string& table, const std::vector<std::string>& columns,
                       const Row& row);
  // The part every GPU activity table shares: start, end, deviceId, streamId,
  // correlationId, globalPid, graphNodeId as columns 0 to 6.
  std::optional<timeline::OpRow> CommonOp(const SqliteRows& rows);
  uint32_t ProcessOf(int64_t global_id);
  uint32_t RowId(const SqliteRows& rows);
  void CountUnusable(absl::string_view table);
  absl::StatusOr<std::map<int64_t, std::string>> Enum(const std::string& table);

  SqliteCapture db_;
  const std::string label_;
  const ReaderLimits limits_;
  timeline::TimelineBuilder builder_;
  std::optional<SqliteRows> string_query_;
  std::unordered_map<int64_t, NameId> strings_;
  std::unordered_map<NameId, GpuOpKind> kernel_kinds_;
  std::map<int64_t, uint32_t> process_of_global_;
  std::set<uint32_t> used_processes_;
  int64_t last_global_ = -1;
  uint32_t last_process_ = 0;
  uint64_t entries_ = 0;
  uint64_t calls_ = 0;
  uint64_t graph_launches_ = 0;
  bool graphs_hidden_ = false;
};

const std::vector<std::string> kOpColumns = {"start",         "end",       "deviceId",   "streamId",
                                             "correlationId", "globalPid", "graphNodeId"};

std::vector<std::string> OpColumns(std::vector<std::string> more) {
  std::vector<std::string> columns = kOpColumns;
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

template <typename Row>
absl::Status NsysReader::ForEach(const std::string& table, const std::vector<std::string>& columns,
                                 const Row& row) {
  ASSIGN_OR_RETURN(SqliteRows rows, db_.Select(table, columns));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(CountEntry());
    RETURN_IF_ERROR(row(rows));
  }
}

absl::Status NsysReader::CountEntry() {
  if (++entries_ <= limits_.max_entries) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
                   absl::StrCat(label_, ": expected at most ", limits_.max_entries,
                                " rows, found more; export a shorter part of the run"));
}

absl::Status NsysReader::CheckIsNsys() {
  bool meta = false, cupti = false, strings = db_.HasTable("StringIds");
  for (const std::string& table : db_.tables()) {
    meta |= table == "META_DATA_EXPORT" || table == "EXPORT_META_DATA" ||
            table == "META_DATA_CAPTURE" || absl::StartsWith(table, "TARGET_INFO_");
    cupti |= absl::StartsWith(table, "CUPTI_ACTIVITY_KIND_");
  }
  if (meta || (cupti && strings)) return absl::OkStatus();
  std::vector<std::string> some(db_.tables().begin(), db_.tables().end());
  if (some.size() > 5) some.resize(5);
  return MakeError(
      absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_MISMATCH",
      absl::StrCat(label_, ": expected the SQLite export of an nsys report (tables StringIds, ",
                   "META_DATA_EXPORT, CUPTI_ACTIVITY_KIND_*), found ", db_.tables().size(),
                   " tables", some.empty() ? "" : ": ", CleanUtf8(absl::StrJoin(some, ", ")),
                   db_.tables().size() > some.size() ? ", ..." : ""));
}

absl::Status NsysReader::ReadMetaData() {
  auto row = [&](const SqliteRows& rows) {
    const absl::string_view name = rows.Text(0);
    if (name == "EXPORT_PRODUCT_VERSION") {
      builder_.timeline().tool_version = CleanUtf8(rows.Text(1).substr(0, 64));
    }
    if (absl::EndsWith(name, "CUDA_GRAPH_TRACE_OPTIONS:MODE")) {
      graphs_hidden_ |= rows.Text(1) == "Graph";
    }
    return absl::OkStatus();
  };
  for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"}) {
    if (db_.HasTable(table)) RETURN_IF_ERROR(ForEach(table, {"name", "value"}, row));
  }
  return absl::OkStatus();
}

std::string NsysReader::Find(const std::string& table) {
  if (db_.HasTable(table)) return table;
  std::string newest;
  for (const std::string& other : db_.tables()) {
    if (absl::StartsWith(other, table + "_V") && other > newest) newest = other;
  }
  return newest;
}

absl::StatusOr<bool> NsysReader::Usable(const std::string& table,
                                        const std::vector<std::string>& required) {
  if (table.empty()) return false;
  ASSIGN_OR_RETURN(const std::set<std::string> columns, db_.Columns(table));
  for (const std::string& column : required) {
    if (columns.count(column) > 0) continue;
    builder_.Count(absl::StrCat("table_without_column:", table), v1::PARSE_SEVERITY_ERROR,
                   absl::StrCat("table ", table, " has no column \"", column,
                                "\"; none of its rows were used"));
    return false;
  }
  return true;
}

absl::StatusOr<std::string> NsysReader::Text(int64_t id) {
  if (!string_query_.has_value()) {
    if (!db_.HasTable("StringIds")) return std::string();
    ASSIGN_OR_RETURN(SqliteRows query, db_.SelectByKey("StringIds", "value", "id"));
    string_query_.emplace(std::move(query));
  }
  RETURN_IF_ERROR(string_query_->Rebind(id));
  ASSIGN_OR_RETURN(const bool found, string_query_->Next());
  if (!found) return std::string();
  absl::string_view text = string_query_->Text(0);
  if (text.size() > limits_.max_string_bytes) {
    builder_.Count("strings_cut", v1::PARSE_SEVERITY_INFO,
                   absl::StrCat("names longer than ", limits_.max_string_bytes, " bytes, cut"));
    text = text.substr(0, limits_.max_string_bytes);
  }
  return CleanUtf8(text);
}

// Names are asked for when a row needs them: reports carry whole files as
// strings. 0: no such string.
absl::StatusOr<NameId> NsysReader::String(int64_t id) {
  auto it = strings_.find(id);
  if (it != strings_.end()) return it->second;
  ASSIGN_OR_RETURN(std::string text, Text(id));
  if (text.empty()) {
    builder_.Count("strings_missing", v1::PARSE_SEVERITY_DATA_LOSS,
                   "names that StringIds does not hold");
    text = "(unnamed)";
  }
  const NameId name = builder_.names().Intern(text);
  strings_.emplace(id, name);
  return name;
}

// Processes are told apart by the whole global id; the pid alone may repeat
// between virtual machines of one report. Then later ones get a number above
// any pid.
uint32_t NsysReader::ProcessOf(int64_t global_id) {
  const int64_t global = global_id >> kPidShift;
  if (global == last_global_) return last_process_;
  auto [it, is_new] = process_of_global_.try_emplace(global);
  if (is_new) {
    auto pid = static_cast<uint32_t>(global & kPidMask);
    while (!used_processes_.insert(pid).second) pid += 1 << kPidShift;
    it->second = pid;
  }
  last_global_ = global;
  last_process_ = it->second;
  return it->second;
}

uint32_t NsysReader::RowId(const SqliteRows& rows) {
  const int64_t id = rows.rowid();
  return id >= 0 && id < timeline::kNone ? static_cast<uint32_t>(id) : timeline::kNone;
}

void NsysReader::CountUnusable(absl::string_view table) {
  builder_.Count(absl::StrCat("rows_unusable:", table), v1::PARSE_SEVERITY_DATA_LOSS,
                 absl::StrCat("rows of ", table, " without a number for start, end or device"));
}

absl::Status NsysReader::ReadCalls() {
  const std::string table = Find("CUPTI_ACTIVITY_KIND_RUNTIME");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "nameId", "globalTid"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().call_table = table;
  // Whether a call launches or waits follows from its name. The table
  // ..._SYNCHRONIZATION is not asked: it also holds cudaEventQuery and
  // cudaProfilerStop, and every call that waits is here by name.
  std::unordered_map<int64_t, std::pair<NameId, ApiKind>> names;
  return ForEach(
      table, {"start", "end", "globalTid", "correlationId", "nameId"},
      [&](const SqliteRows& rows) -> absl::Status {
        const auto start = rows.Integer(0), end = rows.Integer(1), tid = rows.Integer(2);
        const auto name_id = rows.Integer(4);
        if (!start || !end || !tid || !name_id) {
          CountUnusable(table);
          return absl::OkStatus();
        }
        auto [it, is_new] = names.try_emplace(*name_id);
        if (is_new) {
          ASSIGN_OR_RETURN(const std::string text, Text(*name_id));
          const absl::string_view name = timeline::StripApiVersion(text);
          it->second = {builder_.names().Intern(name.empty() ? "(unnamed)" : name),
                        timeline::ClassifyApiName(name)};
        }
        timeline::CallRow call;
        call.process = ProcessOf(*tid);
        call.thread = *tid & kPidMask;
        call.start_ns = *start;
        call.end_ns = *end;
        call.correlation = rows.Integer(3).value_or(timeline::kNoCorrelation);
        call.name = it->second.first;
        call.kind = it->second.second;
        call.row = RowId(rows);
        ++calls_;
        graph_launches_ += call.kind == ApiKind::kGraphLaunch ? 1 : 0;
        return builder_.AddCall(call);
      });
}

std::optional<timeline::OpRow> NsysReader::CommonOp(const SqliteRows& rows) {
  const auto start = rows.Integer(0), end = rows.Integer(1), device = rows.Integer(2);
  if (!start || !end || !device || *device < 0 || *device > INT32_MAX) return std::nullopt;
  timeline::OpRow op;
  op.start_ns = *start;
  op.end_ns = *end;
  op.device = static_cast<int32_t>(*device);
  op.stream = static_cast<uint32_t>(rows.Integer(3).value_or(0));
  op.correlation = rows.Integer(4).value_or(timeline::kNoCorrelation);
  if (const auto pid = rows.Integer(5)) op.process = ProcessOf(*pid);
  op.in_graph = rows.Integer(6).value_or(0) != 0;
  op.row = RowId(rows);
  return op;
}

absl::Status NsysReader::ReadKernels() {
  const std::string table = Find("CUPTI_ACTIVITY_KIND_KERNEL");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "deviceId"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().kernel_table = table;
  return ForEach(table, OpColumns({"demangledName", "shortName", "mangledName"}),
                 [&](const SqliteRows& rows) -> absl::Status {
                   std::optional<timeline::OpRow> op = CommonOp(rows);
                   if (!op.has_value()) {
                     CountUnusable(table);
                     return absl::OkStatus();
                   }
                   int64_t name_id = -1;
                   for (int column = 7; column <= 9 && name_id < 0; ++column) {
                     name_id = rows.Integer(column).value_or(-1);
                   }
                   ASSIGN_OR_RETURN(op->name, String(name_id));
                   auto [it, is_new] = kernel_kinds_.try_emplace(op->name);
                   if (is_new) {
                     it->second = timeline::ClassifyKernelName(builder_.names().Name(op->name));
                   }
                   op->kind = it->second;
                   return builder_.AddOp(*op);
                 });
}

absl::StatusOr<std::map<int64_t, std::string>> NsysReader::Enum(const std::string& table) {
  std::map<int64_t, std::string> names;
  if (!db_.HasTable(table)) return names;
  RETURN_IF_ERROR(ForEach(table, {"id", "name"}, [&](const SqliteRows& rows) {
    if (const auto id = rows.Integer(0)) names[*id] = std::string(rows.Text(1));
    return absl::OkStatus();
  }));
  return names;
}

absl::Status NsysReader::ReadCopies() {
  const std::string table = Find("CUPTI_ACTIVITY_KIND_MEMCPY");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "deviceId", "copyKind"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().copy_table = table;
  // The numbers as the export explains them, else as CUPTI has them.
  std::map<int64_t, std::optional<GpuOpKind>> kinds;
  ASSIGN_OR_RETURN(const auto kind_names, Enum("ENUM_CUDA_MEMCPY_OPER"));
  for (const CopyKind& kind : kCopyKinds) {
    if (kind_names.empty()) kinds[kind.value] = kind.kind;
    for (const auto& [value, name] : kind_names) {
      if (name == absl::StrCat("CUDA_MEMCPY_KIND_", kind.name)) kinds[value] = kind.kind;
    }
  }
  int64_t pageable = 0, pinned = 1;
  ASSIGN_OR_RETURN(const auto memory_names, Enum("ENUM_CUDA_MEM_KIND"));
  for (const auto& [value, name] : memory_names) {
    if (absl::EndsWith(name, "_PAGEABLE")) pageable = value;
    if (absl::EndsWith(name, "_PINNED")) pinned = value;
  }
  return ForEach(
      table, OpColumns({"copyKind", "bytes", "srcKind", "dstKind"}),
      [&](const SqliteRows& rows) -> absl::Status {
        std::optional<timeline::OpRow> op = CommonOp(rows);
        if (!op.has_value()) {
          CountUnusable(table);
          return absl::OkStatus();
        }
        auto kind = kinds.find(rows.Integer(7).value_or(-1));
        if (kind == kinds.end()) {
          builder_.Count("copies_of_unknown_kind", v1::PARSE_SEVERITY_DATA_LOSS,
                         "copies whose copyKind is not known");
          return absl::OkStatus();
        }
        if (!kind->second.has_value()) {
          builder_.Count("copies_host_to_host", v1::PARSE_SEVERITY_INFO,
                         "copies between host buffers, which take no GPU time");
          return absl::OkStatus();
        }
        op->kind = *kind->second;
        op->name = builder_.names().Intern(CopyName(op->kind));
        op->bytes = static_cast<uint64_t>(std::max<int64_t>(0, rows.Integer(8).value_or(0)));
        const bool to_device = op->kind == GpuOpKind::kCopyHostToDevice;
        if (to_device || op->kind == GpuOpKind::kCopyDeviceToHost) {
          const int64_t memory = rows.Integer(to_device ? 9 : 10).value_or(-1);
          if (memory == pageable) op->host_memory = HostMemory::kPageable;
          if (memory == pinned) op->host_memory = HostMemory::kPinned;
        }
        return builder_.AddOp(*op);
      });
}

absl::Status NsysReader::ReadMemsets() {
  const std::string table = Find("CUPTI_ACTIVITY_KIND_MEMSET");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "deviceId"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().memset_table = table;
  const NameId name = builder_.names().Intern("Memset");
  return ForEach(table, OpColumns({"bytes"}), [&](const SqliteRows& rows) -> absl::Status {
    std::optional<timeline::OpRow> op = CommonOp(rows);
    if (!op.has_value()) {
      CountUnusable(table);
      return absl::OkStatus();
    }
    op->kind = GpuOpKind::kMemset;
    op->name = name;
    op->bytes = static_cast<uint64_t>(std::max<int64_t>(0, rows.Integer(7).value_or(0)));
    return builder_.AddOp(*op);
  });
}

// Graphs recorded as a whole: one row a replay, kernels inside not recorded.
absl::Status NsysReader::ReadGraphs() {
  const std::string table = Find("CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "deviceId"}));
  if (!usable) {
    builder_.timeline().graph_level_trace = graphs_hidden_ && graph_launches_ > 0;
    return absl::OkStatus();
  }
  const NameId name = builder_.names().Intern("CUDA graph");
  return ForEach(table, OpColumns({}), [&](const SqliteRows& rows) -> absl::Status {
    std::optional<timeline::OpRow> op = CommonOp(rows);
    if (!op.has_value()) {
      CountUnusable(table);
      return absl::OkStatus();
    }
    op->kind = GpuOpKind::kGraph;
    op->name = name;
    op->in_graph = true;
    return builder_.AddOp(*op);
  });
}

absl::Status NsysReader::ReadRanges() {
  const std::string table = Find("NVTX_EVENTS");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "eventType", "globalTid"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().range_table = table;
  return ForEach(
      table, {"start", "end", "eventType", "globalTid", "text", "textId"},
      [&](const SqliteRows& rows) -> absl::Status {
        const int64_t type = rows.Integer(2).value_or(-1);
        if (type != kNvtxPushPop && type != kNvtxStartEnd) return absl::OkStatus();
        const auto start = rows.Integer(0), end = rows.Integer(1), tid = rows.Integer(3);
        if (!start || !end || !tid) {
          builder_.Count("ranges_unfinished", v1::PARSE_SEVERITY_INFO,
                         "NVTX ranges that had not ended when the recording did");
          return absl::OkStatus();
        }
        timeline::RangeRow range;
        range.process = ProcessOf(*tid);
        range.thread = *tid & kPidMask;
        range.start_ns = *start;
        range.end_ns = *end;
        range.row = RowId(rows);
        if (!rows.IsNull(4)) {
          range.name = builder_.names().Intern(
              CleanUtf8(rows.Text(4).substr(0, limits_.max_string_bytes)));
        } else {
          ASSIGN_OR_RETURN(range.name, String(rows.Integer(5).value_or(-1)));
        }
        return builder_.AddRange(range);
      });
}

absl::Status NsysReader::ReadGpus() {
  // CUDA ordinal of each row of TARGET_INFO_GPU. Processes may number the GPUs
  // each in its own way: the first one's numbers stand, the others are counted.
  std::map<int64_t, int64_t> gpu_of_ordinal;
  ASSIGN_OR_RETURN(const bool mapped, Usable(Find("TARGET_INFO_CUDA_DEVICE"), {"gpuId", "cudaId"}));
  if (mapped) {
    RETURN_IF_ERROR(ForEach("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId"},
                            [&](const SqliteRows& rows) {
      const auto gpu = rows.Integer(0), ordinal = rows.Integer(1);
      if (!gpu || !ordinal) return absl::OkStatus();
      auto [it, is_new] = gpu_of_ordinal.try_emplace(*ordinal, *gpu);
      if (it->second != *gpu) {
        builder_.Count("devices_numbered_differently", v1::PARSE_SEVERITY_INFO,
                       "processes that number the GPUs in another way than the first one");
      }
      return absl::OkStatus();
    }));
  }
  if (!db_.HasTable("TARGET_INFO_GPU")) return absl::OkStatus();
  return ForEach(
      "TARGET_INFO_GPU",
      {"id", "cuDevice", "name", "uuid", "computeMajor", "computeMinor", "smCount", "totalMemory",
       "memoryBandwidth", "clockRate", "deviceId"},
      [&](const SqliteRows& rows) -> absl::Status {
        auto number = [&](int column) {
          return static_cast<uint64_t>(std::max<int64_t>(0, rows.Integer(column).value_or(0)));
        };
        std::optional<int64_t> id = rows.Integer(0);
        if (!id) id = rows.Integer(10);
        std::optional<int64_t> ordinal;
        for (const auto& [cuda, gpu] : gpu_of_ordinal) {
          if (id && gpu == *id) ordinal = cuda;
        }
        if (!ordinal && gpu_of_ordinal.empty()) ordinal = rows.Integer(1);
        if (!ordinal && gpu_of_ordinal.empty() && rows.IsNull(1)) ordinal = id;
        // An adapter that CUDA does not number runs no kernels.
        if (!ordinal || *ordinal < 0 || *ordinal > INT32_MAX) return absl::OkStatus();
        v1::Gpu gpu;
        gpu.set_device(static_cast<int32_t>(*ordinal));
        gpu.set_name(CleanUtf8(rows.Text(2).substr(0, 256)));
        gpu.set_uuid(CleanUtf8(rows.Text(3).substr(0, 64)));
        gpu.set_compute_major(static_cast<uint32_t>(number(4)));
        gpu.set_compute_minor(static_cast<uint32_t>(number(5)));
        gpu.set_sm_count(static_cast<uint32_t>(number(6)));
        gpu.set_memory_bytes(number(7));
        gpu.set_memory_bandwidth(number(8));
        gpu.set_max_sm_clock_hz(number(9));
        auto& gpus = builder_.timeline().gpus;
        gpus.insert(std::upper_bound(gpus.begin(), gpus.end(), gpu,
                                     [](const v1::Gpu& a, const v1::Gpu& b) {
                                       return a.device() < b.device();
                                     }),
                    gpu);
        return absl::OkStatus();
      });
}

absl::Status NsysReader::ReadHowStarted() {
  if (!db_.HasTable("DIAGNOSTIC_EVENT")) return absl::OkStatus();
  return ForEach("DIAGNOSTIC_EVENT", {"text"}, [&](const SqliteRows& rows) {
    if (absl::StrContains(rows.Text(0), "started due to cudaProfilerStart")) {
      builder_.timeline().recorded_by_profiler_api = true;
    }
    return absl::OkStatus();
  });
}

void NsysReader::NoteMissing() {
  if (builder_.ops() == 0) {
    builder_.Count("no_gpu_operations", v1::PARSE_SEVERITY_ERROR,
                   "the report has no kernel, copy, memset or graph rows: CUDA was not traced, "
                   "nothing ran on a GPU, or the platform hides GPU activity (WSL 2)");
  } else if (calls_ == 0) {
    builder_.Count("no_api_calls", v1::PARSE_SEVERITY_ERROR,
                   "the report has no CUDA API rows: the cause of idle GPU time is not known");
  }
}

// The report does not say ranks. The usual launchers start local ranks in order
// and give rank i GPU i, so processes are numbered when there are several, each
// drives one GPU of its own, NCCL is there, and the orders of pids and of
// devices agree; else the rank stays unknown (-1).
void NsysReader::AssignRanks(timeline::Timeline* result) {
  bool collectives = false;
  std::vector<timeline::Process*> drivers;
  for (timeline::Process& process : result->processes) {
    if (process.lanes.empty()) continue;
    if (process.lanes.size() > 1) return;
    if (!drivers.empty() && drivers.back()->lanes[0].device >= process.lanes[0].device) return;
    drivers.push_back(&process);
    for (GpuOpKind kind : process.lanes[0].ops.kind) collectives |= kind == GpuOpKind::kCollective;
  }
  if (drivers.size() < 2 || !collectives) return;
  for (size_t i = 0; i < drivers.size(); ++i) drivers[i]->rank = static_cast<int32_t>(i);
}

}  // namespace

absl::StatusOr<timeline::Timeline> ReadNsysSqlite(const std::string& path,
                                                  const ReaderLimits& limits) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, InputFile::Open(path, limits));
  const std::string label = input->label();
  input.reset();
  ASSIGN_OR_RETURN(PlainFile plain, PlainFile::Make(path, limits));
  ASSIGN_OR_RETURN(SqliteCapture db, SqliteCapture::Open(plain.path(), label));
  return NsysReader(std::move(db), label, limits).Read();
}

}  // namespace solward::readers
