// The one timeline model that every timeline reader fills and that shares,
// steps and counts are computed from. Columnar; names interned; at most 48
// bytes a GPU operation. Times are ns in the capture's own clock.
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "solward/v1/delegation.pb.h"

namespace solward::timeline {

using NameId = uint32_t;
inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Interns names. Views stay valid while the table lives, also when it moves.
class NameTable {
 public:
  NameTable() = default;
  NameTable(NameTable&&) = default;
  NameTable& operator=(NameTable&&) = default;

  NameId Intern(absl::string_view name);
  absl::string_view Name(NameId id) const { return names_[id]; }
  size_t size() const { return names_.size(); }

 private:
  std::deque<std::string> names_;
  std::unordered_map<std::string_view, NameId> index_;
};

enum class GpuOpKind : uint8_t {
  kKernel,      // compute kernel
  kCollective,  // kernel of a collective library
  kCopyHostToDevice,
  kCopyDeviceToHost,
  kCopyDeviceToDevice,  // also peer copies
  kMemset,
  kGraph,  // a whole graph replay (graph-level trace)
};

// What is known of the host side of a copy.
enum class HostMemory : uint8_t { kUnknown, kPageable, kPinned };

// GPU operations of one device as one process launched them, sorted by start.
struct GpuOps {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<uint64_t> bytes;  // copies and memsets; 0 for kernels
  std::vector<NameId> name;
  std::vector<uint32_t> call;  // index into ApiCalls, kNone when unknown
  std::vector<uint32_t> stream;
  std::vector<uint32_t> row;  // the tool's own row id, for provenance
  std::vector<GpuOpKind> kind;
  std::vector<HostMemory> host_memory;
  std::vector<uint8_t> in_graph;  // 1: launched by a graph

  size_t size() const { return start_ns.size(); }
};

enum class ApiKind : uint8_t {
  kOther,
  kLaunch,  // kernel launch, also cooperative and Ex forms
  kGraphLaunch,
  kCopy,          // asynchronous copy or memset call
  kSynchronize,   // stream, device, context or event synchronize
  kBlockingCopy,  // a copy call that waits for the device
};

// CUDA API calls of one process, sorted by (thread, start).
struct ApiCalls {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<NameId> name;      // without the _vNNNN suffix
  std::vector<uint32_t> thread;  // index into Process::threads
  std::vector<uint32_t> row;
  std::vector<ApiKind> kind;
  // thread_begin[t] .. thread_begin[t + 1]: the calls of thread t.
  std::vector<uint32_t> thread_begin;

  size_t size() const { return start_ns.size(); }
};

// Named CPU ranges (NVTX push/pop and start/end, user annotations).
struct Ranges {
  std::vector<int64_t> start_ns;
  std::vector<int64_t> end_ns;
  std::vector<NameId> name;
  std::vector<uint32_t> thread;
  std::vector<uint32_t> row;

  size_t size() const { return start_ns.size(); }
};

struct GpuLane {
  int32_t device = 0;
  GpuOps ops;
};

// One process of the capture: its host side and the GPUs it used.
struct Process {
  uint32_t pid = 0;
  int32_t rank = -1;
  std::vector<int64_t> threads;  // the tool's own thread ids
  ApiCalls calls;
  Ranges ranges;
  std::vector<GpuLane> lanes;  // by device
};

struct Timeline {
  NameTable names;
  std::vector<Process> processes;
  std::vector<v1::Gpu> gpus;
  std::string tool;  // "nsys" or "torch.profiler"
  std::string tool_version;
  std::string artifact_id;
  // Names of the tool's tables that rows refer to, for provenance.
  std::string kernel_table, copy_table, memset_table, call_table, range_table;
  // GPU rows exist at all; false is "no GPU data", not "GPU idle".
  bool has_gpu_data = false;
  // Graphs were recorded as a whole; kernels inside are hidden.
  bool graph_level_trace = false;
  // Recording was started by cudaProfilerStart: all of it is inside that region.
  bool recorded_by_profiler_api = false;
  // What to add to the times for ns since 1970; 0: not known or nothing.
  int64_t clock_base_ns = 0;
  std::vector<v1::ParseStatistic> statistics;
};

// Class of a GPU kernel name: kCollective for NCCL, RCCL, NVSHMEM and custom
// all-reduce kernels, else kKernel.
GpuOpKind ClassifyKernelName(absl::string_view name);

// Kind of a CUDA or HIP API call by its name without version suffix.
ApiKind ClassifyApiName(absl::string_view name);

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel".
absl::string_view StripApiVersion(absl::string_view name);

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_TIMELINE_H_
