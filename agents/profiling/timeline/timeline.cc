#include "agents/profiling/timeline/timeline.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace solward::timeline {
namespace {

// Lower-case words of kernel function names that move data between GPUs. Looked
// for in the function's own name only: template and call arguments may well
// name a functor after a collective.
constexpr std::array<absl::string_view, 31> kCollectiveWords = {
    // AMD's RCCL before it took NCCL's names; Microsoft's MSCCL and MSCCL++.
    "rccl_main_kernel",
    "rcclgenerickernel",
    "rcclgenericop",
    "mscclkernel",
    "mscclpp",
    // NVSHMEM and the MoE dispatch built on it.
    "nvshmem",
    "deep_ep::",
    // vLLM, SGLang and AITER custom all-reduce; AMD quick reduce.
    "cross_device_reduce",
    "allreduce_prototype",
    "quickreduce",
    // TensorRT-LLM and FlashInfer.
    "allreducekernel",
    "allreduce_fusion",
    "allreduce_kernel",
    "lamportallreduce",
    "oneshotallreduce",
    "twoshotallreduce",
    "moealltoall",
    "moe_alltoall",
    // PyTorch symmetric memory.
    "all_reduce_kernel",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "multimem_all_reduce",
    "multimem_all_gather",
    "multimem_one_shot",
    "all_gather_kernel",
    "reduce_scatter_kernel",
    // Megatron and Transformer Engine user buffers.
    "userbuffers_",
    // Names that home-made libraries use.
    "allgatherkernel",
    "reducescatterkernel",
    "all_to_all_kernel",
    "alltoallkernel",
};

// "void ns::f<T>(U)" -> "ns::f"; "(anonymous namespace)::" stays part of the name.
absl::string_view FunctionName(absl::string_view name) {
  absl::ConsumePrefix(&name, "void ");
  constexpr absl::string_view kAnonymous = "(anonymous namespace)";
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') return name.substr(0, i);
    if (name[i] != '(') continue;
    if (!absl::StartsWith(name.substr(i), kAnonymous)) return name.substr(0, i);
    i += kAnonymous.size() - 1;
  }
  return name;
}

// "cuMemcpyHtoD_v2_ptds" -> "cuMemcpyHtoD": the per-thread default stream
// variants do the same.
absl::string_view StripStreamSuffix(absl::string_view name) {
  name = StripApiVersion(name);
  for (absl::string_view suffix : {"_ptsz", "_ptds", "_spt"}) absl::ConsumeSuffix(&name, suffix);
  return StripApiVersion(name);
}

bool StripApiPrefix(absl::string_view* name) {
  return absl::ConsumePrefix(name, "cuda") || absl::ConsumePrefix(name, "cu") ||
         absl::ConsumePrefix(name, "hip");
}

bool IsLaunch(absl::string_view name) {
  static constexpr std::array<absl::string_view, 17> kLaunches = {
      // Runtime and driver.
      "LaunchKernel", "LaunchKernelExC", "LaunchKernelEx", "LaunchCooperativeKernel",
      "LaunchCooperativeKernelMultiDevice", "Launch", "LaunchGrid", "LaunchGridAsync",
      // HIP.
      "ExtLaunchKernel", "ExtLaunchMultiKernelMultiDevice", "ModuleLaunchKernel",
      "ExtModuleLaunchKernel", "HccModuleLaunchKernel", "ModuleLaunchCooperativeKernel",
      "ModuleLaunchCooperativeKernelMultiDevice", "LaunchByPtr", "DrvLaunchKernelEx"};
  return std::find(kLaunches.begin(), kLaunches.end(), name) != kLaunches.end();
}

bool IsSynchronize(absl::string_view name) {
  static constexpr std::array<absl::string_view, 5> kObjects = {"Device", "Stream", "Event", "Ctx",
                                                                "Thread"};
  if (!absl::ConsumeSuffix(&name, "Synchronize")) return false;
  return std::find(kObjects.begin(), kObjects.end(), name) != kObjects.end();
}

// A copy or memset call, by whether the host waits for it. Copies inside the
// device and memsets return before the device is done.
ApiKind CopyKind(absl::string_view name) {
  if (absl::StartsWith(name, "Memset") || absl::StartsWith(name, "MemPrefetch")) {
    return ApiKind::kCopy;
  }
  if (!absl::StartsWith(name, "Memcpy")) return ApiKind::kOther;
  if (absl::StrContains(name, "Async") || absl::StartsWith(name, "MemcpyBatch")) {
    return ApiKind::kCopy;
  }
  for (absl::string_view inside : {"DtoD", "DtoA", "AtoD", "AtoA", "Peer"}) {
    if (absl::StrContains(name, inside)) return ApiKind::kCopy;
  }
  return ApiKind::kBlockingCopy;
}

}  // namespace

NameId NameTable::Intern(absl::string_view name) {
  auto it = index_.find(std::string_view(name.data(), name.size()));
  if (it != index_.end()) return it->second;
  const auto id = static_cast<NameId>(names_.size());
  names_.emplace_back(name);
  index_.emplace(names_.back(), id);
  return id;
}

GpuOpKind ClassifyKernelName(absl::string_view name) {
  const std::string function = absl::AsciiStrToLower(FunctionName(name));
  // ncclDevKernel_*, ncclKernel_*, ncclSymkDevKernel_*, ...: everything that
  // NCCL (and RCCL, which took its names) runs on the GPU.
  if (absl::StartsWith(function, "nccl") || absl::StrContains(function, "::nccl")) {
    return GpuOpKind::kCollective;
  }
  for (absl::string_view word : kCollectiveWords) {
    if (absl::StrContains(function, word)) return GpuOpKind::kCollective;
  }
  return GpuOpKind::kKernel;
}

ApiKind ClassifyApiName(absl::string_view name) {
  name = StripStreamSuffix(name);
  if (!StripApiPrefix(&name)) return ApiKind::kOther;
  if (name == "GraphLaunch") return ApiKind::kGraphLaunch;
  if (IsLaunch(name)) return ApiKind::kLaunch;
  if (IsSynchronize(name)) return ApiKind::kSynchronize;
  return CopyKind(name);
}

absl::string_view StripApiVersion(absl::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && absl::ascii_isdigit(name[digits - 1])) --digits;
  if (digits == name.size() || digits < 3) return name;
  if (name.substr(digits - 2, 2) != "_v") return name;
  return name.substr(0, digits - 2);
}

}  // namespace solward::timeline
