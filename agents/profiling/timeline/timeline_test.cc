#include "agents/profiling/timeline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace solward::timeline {
namespace {

TEST(NameTable, GivesOneIdToOneName) {
  NameTable names;
  const NameId a = names.Intern("a"), b = names.Intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(names.Intern("a"), a);
  EXPECT_EQ(names.Name(a), "a");
  EXPECT_EQ(names.size(), 2u);
}

TEST(NameTable, KnowsItsNamesAfterAMove) {
  NameTable names;
  const NameId id = names.Intern("k");
  for (int i = 0; i < 1000; ++i) names.Intern(std::to_string(i));
  NameTable moved = std::move(names);
  EXPECT_EQ(moved.Name(id), "k");
  EXPECT_EQ(moved.Intern("k"), id);
  EXPECT_EQ(moved.Intern("999"), moved.Intern("999"));
}

TEST(KernelName, OfACollectiveLibraryIsACollective) {
  for (const char* name : {
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
           "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
           "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymkDevWorkArgs4K)",
           "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
           "rccl_main_kernel(ncclDevComm*)",
           "void nvshmemi_transfer_put_kernel<int>(int*)",
           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
           "void sglang::cross_device_reduce_2stage<half, 4>(sglang::RankData*)",
           "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8>(AllReduceParams)",
           "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>()",
           "two_shot_all_reduce_kernel",
           "void (anonymous namespace)::multimem_all_reduce_kernel<float>(float*)",
           "deep_ep::intranode::dispatch(int4*)",
           "void moeAllToAllKernel<8>(int*)",
       }) {
    EXPECT_EQ(ClassifyKernelName(name), GpuOpKind::kCollective) << name;
  }
}

TEST(KernelName, OfComputingIsAKernelAlsoWhenAnArgumentNamesACollective) {
  for (const char* name : {
           "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float*)",
           "void at::native::elementwise_kernel<128, 2, ncclFunctor>(int, ncclFunctor)",
           "void f<cross_device_reduce_tag>(int)",
           "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64",
           "void cublasLt::splitKreduce_kernel<32, 16, int>(int)",
           "void cub::DeviceReduceKernel<float>(float*)",
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)",
           "fma_loop(float*, int)",
           "reduce_segments",
           "",
       }) {
    EXPECT_EQ(ClassifyKernelName(name), GpuOpKind::kKernel) << name;
  }
}

TEST(ApiName, LosesItsVersionOnly) {
  EXPECT_EQ(StripApiVersion("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(StripApiVersion("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
  EXPECT_EQ(StripApiVersion("cudaGetDeviceProperties_v2_v12000"), "cudaGetDeviceProperties_v2");
  EXPECT_EQ(StripApiVersion("cuMemcpyHtoD_v2"), "cuMemcpyHtoD");
  EXPECT_EQ(StripApiVersion("cuLaunchKernel"), "cuLaunchKernel");
  EXPECT_EQ(StripApiVersion("my_v"), "my_v");
  EXPECT_EQ(StripApiVersion("x2"), "x2");
  EXPECT_EQ(StripApiVersion("7000"), "7000");
  EXPECT_EQ(StripApiVersion(""), "");
}

TEST(ApiName, TellsLaunchesOfRuntimeDriverAndHip) {
  for (const char* name :
       {"cudaLaunchKernel", "cudaLaunchKernel_ptsz", "cudaLaunchKernelExC", "cudaLaunchKernel_spt",
        "cudaLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchGridAsync",
        "cuLaunchCooperativeKernelMultiDevice", "cudaLaunch", "hipLaunchKernel",
        "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "hipExtLaunchKernel"}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kLaunch) << name;
  }
  for (const char* name :
       {"cudaGraphLaunch", "cuGraphLaunch", "cuGraphLaunch_ptsz", "hipGraphLaunch"}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kGraphLaunch) << name;
  }
}

TEST(ApiName, TellsWaitingCalls) {
  for (const char* name :
       {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaStreamSynchronize_ptsz",
        "cudaEventSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize", "cuStreamSynchronize",
        "cuEventSynchronize", "hipDeviceSynchronize", "hipStreamSynchronize"}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kSynchronize) << name;
  }
  for (const char* name : {"cudaMemcpy", "cudaMemcpy2D", "cudaMemcpyToSymbol", "cuMemcpyHtoD_v2",
                           "cuMemcpyDtoH", "cuMemcpyDtoH_v2_ptds", "hipMemcpyWithStream"}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kBlockingCopy) << name;
  }
}

TEST(ApiName, TellsCallsThatDoNotWait) {
  for (const char* name : {"cudaMemcpyAsync", "cudaMemcpyAsync_ptsz", "cuMemcpyHtoDAsync_v2",
                           "cudaMemsetAsync", "cudaMemset", "cuMemsetD32Async", "cuMemcpyDtoD_v2",
                           "cudaMemcpyPeerAsync", "cudaMemPrefetchAsync", "hipMemcpyAsync"}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kCopy) << name;
  }
  for (const char* name :
       {"cudaMalloc", "cudaEventQuery", "cudaStreamWaitEvent", "cuKernelGetName",
        "cudaProfilerStop", "cudaLaunchHostFunc", "cudaGraphInstantiate", "INVALID", "read", ""}) {
    EXPECT_EQ(ClassifyApiName(name), ApiKind::kOther) << name;
  }
}

}  // namespace
}  // namespace solward::timeline
