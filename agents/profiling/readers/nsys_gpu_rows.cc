// Rows of an nsys export that ran on a GPU: kernels, copies, memsets, graphs.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/profiling/readers/nsys_reader.h"

namespace solward::readers {
namespace {

using timeline::GpuOpKind;
using timeline::HostMemory;
using timeline::NameId;

struct CopyKind {
  int64_t value;
  const char* name;  // in ENUM_CUDA_MEMCPY_OPER, after "CUDA_MEMCPY_KIND_"
  std::optional<GpuOpKind> kind;
};

// Managed memory that migrates moves like any other copy.
constexpr CopyKind kCopyKinds[] = {
    {1, "HTOD", GpuOpKind::kCopyHostToDevice},
    {2, "DTOH", GpuOpKind::kCopyDeviceToHost},
    {3, "HTOA", GpuOpKind::kCopyHostToDevice},
    {4, "ATOH", GpuOpKind::kCopyDeviceToHost},
    {5, "ATOA", GpuOpKind::kCopyDeviceToDevice},
    {6, "ATOD", GpuOpKind::kCopyDeviceToDevice},
    {7, "DTOA", GpuOpKind::kCopyDeviceToDevice},
    {8, "DTOD", GpuOpKind::kCopyDeviceToDevice},
    {9, "HTOH", std::nullopt},
    {10, "PTOP", GpuOpKind::kCopyDeviceToDevice},
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

const std::vector<std::string> kOpColumns = {"start",         "end",       "deviceId",   "streamId",
                                             "correlationId", "globalPid", "graphNodeId"};

std::vector<std::string> OpColumns(std::vector<std::string> more) {
  std::vector<std::string> columns = kOpColumns;
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

}  // namespace

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
  return ForEach(table, OpColumns({"copyKind", "bytes", "srcKind", "dstKind"}),
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
                   op->bytes =
                       static_cast<uint64_t>(std::max<int64_t>(0, rows.Integer(8).value_or(0)));
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

}  // namespace solward::readers
