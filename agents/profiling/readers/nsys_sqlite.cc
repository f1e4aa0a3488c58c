// SQLite exports of Nsight Systems, from schema-less ones (2020) to 3.25.
// Tables exist only when they have rows, and columns come and go between
// versions, so that everything is asked for by name and whatever is there is
// used.
#include <algorithm>
#include <map>
#include <memory>
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
#include "agents/profiling/readers/nsys_reader.h"
#include "agents/profiling/readers/reader.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

using timeline::ApiKind;
using timeline::GpuOpKind;
using timeline::NameId;

constexpr int64_t kPidMask = 0xffffff;
constexpr int kPidShift = 24;

// ENUM_NSYS_EVENT_TYPE: NvtxPushPopRange and NvtxStartEndRange.
constexpr int64_t kNvtxPushPop = 59;
constexpr int64_t kNvtxStartEnd = 60;

}  // namespace

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
  return ForEach(table, {"start", "end", "globalTid", "correlationId", "nameId"},
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

absl::Status NsysReader::ReadRanges() {
  const std::string table = Find("NVTX_EVENTS");
  ASSIGN_OR_RETURN(const bool usable, Usable(table, {"start", "end", "eventType", "globalTid"}));
  if (!usable) return absl::OkStatus();
  builder_.timeline().range_table = table;
  return ForEach(table, {"start", "end", "eventType", "globalTid", "text", "textId"},
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
    RETURN_IF_ERROR(
        ForEach("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId"}, [&](const SqliteRows& rows) {
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
        gpus.insert(std::upper_bound(
                        gpus.begin(), gpus.end(), gpu,
                        [](const v1::Gpu& a, const v1::Gpu& b) { return a.device() < b.device(); }),
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
