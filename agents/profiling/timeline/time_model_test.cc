#include "agents/profiling/timeline/time_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "agents/profiling/timeline/host_activity.h"
#include "agents/profiling/timeline/tiny_timeline.h"
#include "common/status_matchers.h"

namespace solward::timeline {
namespace {

using solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kUs = 1000;

// The shares of a timeline with one lane.
LaneShares Only(const Timeline& timeline, const v1::Region& region = {}) {
  auto all = ComputeShares(timeline, region, {});
  EXPECT_TRUE(all.ok()) << all.status();
  if (!all.ok() || all->size() != 1) {
    ADD_FAILURE() << "expected one lane";
    return {};
  }
  const LaneShares& shares = (*all)[0];
  EXPECT_EQ(shares.whole.busy() + shares.whole.idle(), shares.whole.window);
  EXPECT_EQ(shares.window_end_ns - shares.window_start_ns, shares.whole.window);
  return shares;
}

LaneShares Only(Tiny& tiny, const v1::Region& region = {}) { return Only(tiny.Build(), region); }

v1::Region Nvtx(const std::string& name) {
  v1::Region region;
  region.set_nvtx_range(name);
  return region;
}

// Parts in microseconds, for a failure that can be read.
struct Parts {
  double kernel = 0, communication = 0, transfer = 0, queued = 0, host = 0, sync = 0, launch = 0,
         unattributed = 0;
  bool operator==(const Parts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Parts& p) {
  return out << "kernel " << p.kernel << " communication " << p.communication << " transfer "
             << p.transfer << " queued " << p.queued << " host " << p.host << " sync " << p.sync
             << " launch " << p.launch << " unattributed " << p.unattributed;
}

Parts Us(const TimeParts& p) {
  return {.kernel = p.kernel / 1e3,
          .communication = p.exposed_communication / 1e3,
          .transfer = p.exposed_transfer / 1e3,
          .queued = p.idle_queued / 1e3,
          .host = p.idle_host / 1e3,
          .sync = p.idle_sync / 1e3,
          .launch = p.idle_launch / 1e3,
          .unattributed = p.idle_unattributed / 1e3};
}

// The example that docs/time-model.md works out by hand.
TEST(TimeModel, WorkedExampleOfTheDocument) {
  Tiny t;
  t.Range("step", 0, 400);
  t.Range("step", 400, 1500);
  t.Kernel(30, 100, t.Call("cudaLaunchKernel", 10, 20));
  t.Kernel(105, 200, t.Call("cudaLaunchKernel", 20, 30));
  t.Op(GpuOpKind::kCopyDeviceToHost, 200, 230, t.Call("cudaMemcpyAsync", 30, 40));
  t.Call("cudaStreamSynchronize", 40, 240);
  t.Kernel(275, 300, t.Call("cudaLaunchKernel", 260, 270));
  t.Kernel(670, 800, t.Call("cudaLaunchKernel", 650, 660));
  t.Op(GpuOpKind::kCollective, 750, 900, t.Call("cudaLaunchKernelExC", 660, 670));
  t.Op(GpuOpKind::kCopyHostToDevice, 850, 960, t.Call("cudaMemcpyAsync", 670, 680));
  t.Kernel(1015, 1100, t.Call("cudaLaunchKernel", 1000, 1010));
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.window_start_ns, 30 * kUs);
  EXPECT_EQ(shares.window_end_ns, 1100 * kUs);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 405,
                                     .communication = 100,
                                     .transfer = 90,
                                     .queued = 5,
                                     .host = 350,
                                     .sync = 45,
                                     .launch = 75}));
  EXPECT_EQ(shares.whole.communication, 150 * kUs);
  EXPECT_EQ(shares.whole.transfer, 140 * kUs);
  ASSERT_EQ(shares.steps.size(), 2u);
  EXPECT_EQ(shares.steps[0].start_ns, 30 * kUs);
  EXPECT_EQ(
      Us(shares.steps[0].parts),
      (Parts{.kernel = 190, .transfer = 30, .queued = 5, .host = 350, .sync = 45, .launch = 20}));
  EXPECT_EQ(shares.steps[1].start_ns, 670 * kUs);
  EXPECT_EQ(Us(shares.steps[1].parts),
            (Parts{.kernel = 215, .communication = 100, .transfer = 60, .launch = 55}));
  EXPECT_EQ(shares.lead_in_ns, 30 * kUs);
  EXPECT_EQ(shares.tail_ns, 400 * kUs);
  EXPECT_EQ(shares.kernels, 6u);
  EXPECT_EQ(shares.launch_calls, 6u);
  EXPECT_EQ(shares.synchronizations, 1u);
  EXPECT_EQ(shares.synchronization_ns, 200 * kUs);
}

// --- busy --------------------------------------------------------------------

TEST(Busy, KernelsOfTwoStreamsCountOnce) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 10, 30);
  t.Queued(GpuOpKind::kKernel, 20, 40);
  t.Queued(GpuOpKind::kKernel, 22, 25);
  EXPECT_EQ(Us(Only(t).whole), (Parts{.kernel = 30}));
}

TEST(Busy, DeviceCopiesAndMemsetsAreKernelTime) {
  Tiny t;
  t.Queued(GpuOpKind::kCopyDeviceToDevice, 0, 10);
  t.Queued(GpuOpKind::kMemset, 10, 15);
  const LaneShares shares = Only(t);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 15}));
  EXPECT_EQ(shares.kernels, 0u) << "they are not kernels all the same";
}

TEST(Busy, CommunicationIsExposedWhereNoKernelRuns) {
  Tiny t;
  t.Queued(GpuOpKind::kCollective, 0, 100);
  t.Queued(GpuOpKind::kKernel, 20, 50);
  t.Queued(GpuOpKind::kKernel, 90, 120);
  const LaneShares shares = Only(t);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 60, .communication = 60}));
  EXPECT_EQ(shares.whole.communication, 100 * kUs);
}

TEST(Busy, TransferIsExposedWhereNeitherKernelNorCollectiveRuns) {
  Tiny t;
  t.Queued(GpuOpKind::kCopyHostToDevice, 0, 100);
  t.Queued(GpuOpKind::kKernel, 10, 30);
  t.Queued(GpuOpKind::kCollective, 20, 50);
  t.Queued(GpuOpKind::kCopyDeviceToHost, 90, 110);
  const LaneShares shares = Only(t);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 20, .communication = 20, .transfer = 70}));
  EXPECT_EQ(shares.whole.transfer, 110 * kUs);
}

// --- idle, gap by gap --------------------------------------------------------

// A kernel from 0 to 100, and one from 1000 that `call` launched.
LaneShares OneGap(Tiny& t, int64_t call) {
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Kernel(1000, 1100, call);
  return Only(t);
}

TEST(Idle, IsQueuedWhenTheCallHadReturnedBeforeTheGap) {
  Tiny t;
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 80, 100)).whole),
            (Parts{.kernel = 200, .queued = 900}));
}

TEST(Idle, IsLaunchWhenTheCallReturnsInTheGap) {
  Tiny t;
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 80, 101)).whole),
            (Parts{.kernel = 200, .launch = 900}));
}

TEST(Idle, IsHostWhereTheThreadMadeNoCallFor200Us) {
  Tiny t;
  t.Call("cudaEventRecord", 310, 320);  // 210 us after the gap began
  t.Call("cudaEventRecord", 520, 530);  // 200 us later
  t.Call("cudaEventRecord", 729, 730);  // 199 us later: not host work
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 940, 950)).whole),
            (Parts{.kernel = 200, .host = 210 + 200 + 210, .launch = 199 + 31 + 50}));
}

TEST(Idle, OnlyThePartOfAStretchInsideTheGapCounts) {
  Tiny t;
  t.Call("cudaEventRecord", 0, 1);
  // No call from 1 to 299, but only 199 us of that lie in the gap.
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 299, 310)).whole),
            (Parts{.kernel = 200, .launch = 900}));
}

TEST(Idle, TimeInsideAnyCallIsNoHostWork) {
  Tiny t;
  // A runtime call that made a driver call: the outer one lasts to 600.
  t.Call("cudaMalloc", 100, 600);
  t.Call("cuMemAlloc", 110, 120);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 700, 710)).whole),
            (Parts{.kernel = 200, .launch = 900}));
}

TEST(Idle, CallsOfOtherThreadsDoNotMatter) {
  Tiny t;
  t.Thread(2);
  for (int i = 0; i < 9; ++i) t.Call("cudaEventQuery", 100 + 100 * i, 150 + 100 * i);
  t.Call("cudaStreamSynchronize", 120, 500);
  t.Thread(1);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 900, 910)).whole),
            (Parts{.kernel = 200, .host = 800, .launch = 100}));
}

TEST(Idle, WithASynchronizationIsSyncRefillIncluded) {
  Tiny t;
  t.Call("cudaStreamSynchronize", 50, 110);  // waits for the first kernel
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 150, 160)).whole),
            (Parts{.kernel = 200, .sync = 900}));
}

TEST(Idle, HostWorkAfterASynchronizationIsHost) {
  Tiny t;
  t.Call("cudaStreamSynchronize", 50, 110);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 710, 720)).whole),
            (Parts{.kernel = 200, .host = 600, .sync = 300}));
}

TEST(Idle, ASynchronizationThatEndedBeforeTheGapDoesNotCount) {
  Tiny t;
  t.Call("cudaStreamSynchronize", 50, 100);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 150, 160)).whole),
            (Parts{.kernel = 200, .launch = 900}));
}

TEST(Idle, ASynchronizationAfterTheLaunchingCallDoesNotCount) {
  // .item(): the copy is launched, then waited for. The gap before the copy is
  // none of the wait's doing.
  Tiny t;
  const int64_t copy = t.Call("cudaMemcpyAsync", 95, 120);
  t.Call("cudaStreamSynchronize", 120, 1100);
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Op(GpuOpKind::kCopyDeviceToHost, 1000, 1100, copy);
  EXPECT_EQ(Us(Only(t).whole), (Parts{.kernel = 100, .transfer = 100, .launch = 900}));
}

TEST(Idle, ABlockingCopySynchronizes) {
  Tiny t;
  t.Call("cudaMemcpy", 50, 110);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 150, 160)).whole),
            (Parts{.kernel = 200, .sync = 900}));
}

TEST(Idle, TheLaunchingThreadIsTheOneThatCounts) {
  // The backward pass is launched by another thread than the forward pass.
  Tiny t;
  t.Call("cudaStreamSynchronize", 50, 1050);
  t.Thread(2);
  EXPECT_EQ(Us(OneGap(t, t.Call("cudaLaunchKernel", 250, 260)).whole),
            (Parts{.kernel = 200, .launch = 900}));
}

TEST(Idle, WithoutTheLaunchingCallHasNoKnownCause) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Kernel(1000, 1100);
  EXPECT_EQ(Us(Only(t).whole), (Parts{.kernel = 200, .unattributed = 900}));
}

TEST(Idle, StretchesOfAMillisecondAreToldApart) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Kernel(600, 700, t.Call("cudaLaunchKernel", 500, 510));
  t.Kernel(1800, 1900, t.Call("cudaLaunchKernel", 1700, 1710));
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.whole.idle_host, (400 + 1000) * kUs);
  EXPECT_EQ(shares.whole.host_stretches_1ms, 1000 * kUs);
}

TEST(Idle, OperationsWithoutDurationDivideAGap) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Queued(GpuOpKind::kMemset, 300, 300);
  t.Kernel(1000, 1100, t.Call("cudaLaunchKernel", 310, 320));
  EXPECT_EQ(Us(Only(t).whole), (Parts{.kernel = 200, .queued = 200, .launch = 700}));
}

TEST(Idle, AGapIsOverWhenAnyStreamRuns) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 0, 100);
  t.Queued(GpuOpKind::kCopyHostToDevice, 50, 400);
  t.Kernel(500, 600, t.Call("cudaLaunchKernel", 490, 495));
  EXPECT_EQ(Us(Only(t).whole), (Parts{.kernel = 200, .transfer = 300, .launch = 100}));
}

// --- graphs ------------------------------------------------------------------

TEST(Graph, GapsInsideAreQueuedWhileTheLaunchStillRuns) {
  Tiny t;
  t.Queued(GpuOpKind::kKernel, 0, 100);
  const int64_t graph = t.Call("cudaGraphLaunch", 150, 2000);
  t.Kernel(400, 500, graph);
  t.Kernel(600, 700, graph);
  t.Kernel(703, 710, graph);
  const LaneShares shares = Only(t);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 307, .queued = 103, .launch = 300}));
  EXPECT_EQ(shares.kernels, 4u);
  EXPECT_EQ(shares.launch_calls, 2u);
  EXPECT_EQ(shares.graph_launches, 1u);
  EXPECT_EQ(shares.graph_operations, 3u);
}

TEST(Graph, RecordedAsAWholeIsKernelTimeAndNoKernel) {
  Tiny t;
  t.Op(GpuOpKind::kGraph, 10, 500, t.Call("cudaGraphLaunch", 0, 5));
  const Timeline timeline = t.Build();
  EXPECT_TRUE(timeline.graph_level_trace);
  const LaneShares shares = Only(timeline);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 490}));
  EXPECT_EQ(shares.kernels, 0u);
  EXPECT_EQ(shares.graph_launches, 1u);
  EXPECT_EQ(shares.launch_calls, 1u);
}

// --- steps -------------------------------------------------------------------

// Steps of 100 us on the CPU from 0 on; the GPU runs 40 us of each, 50 us late.
void AddSteps(Tiny& t, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    t.Range(name + (name.back() == '#' ? std::to_string(i) : ""), 100 * i, 100 * i + 90);
    t.Kernel(100 * i + 50, 100 * i + 90, t.Call("cudaLaunchKernel", 100 * i + 1, 100 * i + 2));
  }
}

TEST(Steps, RunFromFirstActivityToTheFirstOfTheNext) {
  Tiny t;
  AddSteps(t, "step", 3);
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.step_marker, "nvtx:step");
  ASSERT_EQ(shares.steps.size(), 3u);
  EXPECT_EQ(shares.steps[0].parts.window, 100 * kUs);
  EXPECT_EQ(shares.steps[1].start_ns, 150 * kUs);
  EXPECT_EQ(shares.steps[2].parts.window, 40 * kUs) << "the last ends with its own activity";
  EXPECT_EQ(shares.in_steps.window, shares.whole.window);
  EXPECT_EQ(shares.steps[1].kernels, 1u);
}

TEST(Steps, WorkBelongsToTheStepThatLaunchedItFromWhicheverThread) {
  Tiny t;
  t.Range("ProfilerStep#7", 0, 100);
  t.Range("ProfilerStep#8", 100, 200);
  t.Kernel(10, 20, t.Call("cudaLaunchKernel", 1, 2));
  t.Thread(2);
  t.Kernel(120, 130, t.Call("cudaLaunchKernel", 99, 99.5));  // backward, runs late
  t.Thread(1);
  t.Kernel(140, 150, t.Call("cudaLaunchKernel", 110, 111));
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.step_marker, "ProfilerStep");
  ASSERT_EQ(shares.steps.size(), 2u);
  EXPECT_EQ(shares.steps[1].start_ns, 140 * kUs);
  EXPECT_EQ(shares.steps[0].kernels, 2u);
}

TEST(Steps, AStepWithoutGpuWorkIsNone) {
  Tiny t;
  AddSteps(t, "step", 2);
  t.Range("step", 300, 310);
  EXPECT_EQ(Only(t).steps.size(), 2u);
}

TEST(Steps, WorkBeforeAndAfterThemIsInTheWindowButNotInThem) {
  Tiny t;
  t.Kernel(10, 20);
  AddSteps(t, "step", 2);
  t.Kernel(500, 600, t.Call("cudaLaunchKernel", 450, 451));
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.window_start_ns, 10 * kUs);
  EXPECT_EQ(shares.window_end_ns, 600 * kUs);
  ASSERT_EQ(shares.steps.size(), 2u);
  EXPECT_EQ(shares.in_steps.window, (190 - 50) * kUs);
  EXPECT_EQ(shares.in_steps.kernel, (40 + 40) * kUs);
  EXPECT_EQ(shares.whole.kernel, (10 + 40 + 40 + 100) * kUs);
}

TEST(Steps, AnEnclosedRangeOfTheSameNameIsNoStep) {
  Tiny t;
  AddSteps(t, "step", 2);
  t.Range("step", 0.5, 3);
  EXPECT_EQ(Only(t).steps.size(), 2u);
}

TEST(Steps, OfTorchProfilerComeBeforeOthers) {
  Tiny t;
  AddSteps(t, "ProfilerStep#", 3);
  t.Range("step", 0, 300);
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.step_marker, "ProfilerStep");
  EXPECT_EQ(shares.steps.size(), 3u);
}

TEST(Steps, OfAnotherKindOfWorkAreNone) {
  for (const char* name : {"Optimizer.step#SGD.step", "scheduler_step", "warm-up step 3", "forward",
                           "steps", "stepping stone", "iterator"}) {
    Tiny t;
    AddSteps(t, name, 2);
    EXPECT_EQ(Only(t).step_marker, "") << name;
  }
  for (const char* name : {"Step 3", "train_step", "iteration 12", "iter", "Step 80 to 90"}) {
    Tiny t;
    AddSteps(t, name, 2);
    EXPECT_EQ(Only(t).steps.size(), 2u) << name;
  }
}

TEST(Steps, OfAThreadThatLaunchesNothingDoNotCount) {
  Tiny t;
  AddSteps(t, "step", 3);
  t.Thread(9);
  for (int i = 0; i < 30; ++i) t.Range("step", 10 * i, 10 * i + 9);
  EXPECT_EQ(Only(t).steps.size(), 3u);
}

// --- region ------------------------------------------------------------------

TEST(Region, OfARangeRestrictsTheWindow) {
  Tiny t;
  t.Kernel(5, 8, t.Call("cudaLaunchKernel", 1, 2));
  for (int i = 1; i <= 2; ++i) {
    t.Range("epoch", 100 * i, 100 * i + 90);
    t.Kernel(100 * i + 50, 100 * i + 90, t.Call("cudaLaunchKernel", 100 * i + 1, 100 * i + 2));
  }
  const LaneShares shares = Only(t, Nvtx("epoch"));
  EXPECT_EQ(shares.step_marker, "nvtx:epoch");
  EXPECT_EQ(shares.window_start_ns, 150 * kUs);
  EXPECT_EQ(shares.window_end_ns, 290 * kUs);
  EXPECT_EQ(shares.lead_in_ns, 50 * kUs);
  EXPECT_EQ(shares.tail_ns, 0);
  EXPECT_EQ(shares.steps.size(), 2u);
  EXPECT_EQ(shares.kernels, 2u);
}

TEST(Region, WorkFromOutsideThatRunsInTheWindowCountsThere) {
  Tiny t;
  t.Range("epoch", 100, 200);
  t.Kernel(110, 130, t.Call("cudaLaunchKernel", 101, 102));
  t.Kernel(140, 150, t.Call("cudaLaunchKernel", 10, 11));
  t.Kernel(170, 190, t.Call("cudaLaunchKernel", 103, 104));
  t.Kernel(180, 400, t.Call("cudaLaunchKernel", 12, 13));
  const LaneShares shares = Only(t, Nvtx("epoch"));
  EXPECT_EQ(shares.window_end_ns, 190 * kUs);
  EXPECT_EQ(Us(shares.whole), (Parts{.kernel = 50, .queued = 30}));
}

TEST(Region, FindsNumberedRangesByTheirStem) {
  Tiny t;
  AddSteps(t, "batch#", 2);
  EXPECT_EQ(Only(t, Nvtx("batch")).steps.size(), 2u);
}

TEST(Region, SkippedAndKeptStepsLeaveWholeSteps) {
  Tiny t;
  AddSteps(t, "step", 6);
  v1::Region region;
  region.set_skip_steps(2);
  region.set_max_steps(3);
  const LaneShares shares = Only(t, region);
  ASSERT_EQ(shares.steps.size(), 3u);
  EXPECT_EQ(shares.steps[0].index, 2u);
  EXPECT_EQ(shares.window_start_ns, 250 * kUs);
  // To the first activity of step 5, less one ns.
  EXPECT_EQ(shares.window_end_ns, 550 * kUs - 1);
  EXPECT_EQ(shares.kernels, 3u);
  EXPECT_EQ(shares.in_steps.window, shares.whole.window);
}

TEST(Region, OfProfilerStepsNeedsThem) {
  v1::Region region;
  region.set_profiler_step(true);
  Tiny with;
  AddSteps(with, "ProfilerStep#", 2);
  with.Kernel(500, 600, with.Call("cudaLaunchKernel", 450, 451));
  EXPECT_EQ(Only(with, region).window_end_ns, 190 * kUs);
  Tiny without;
  AddSteps(without, "epoch", 2);
  EXPECT_THAT(ComputeShares(without.Build(), region, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("range \"epoch\" (2)")));
}

TEST(Region, OfTheProfilerApiLiesBetweenStartAndStop) {
  v1::Region region;
  region.set_cuda_profiler_api(true);
  Tiny t;
  t.Kernel(5, 8, t.Call("cudaLaunchKernel", 1, 2));
  t.Call("cudaProfilerStart", 10, 20);
  t.Kernel(40, 50, t.Call("cudaLaunchKernel", 30, 31));
  t.Kernel(60, 70, t.Call("cudaLaunchKernel", 32, 33));
  t.Call("cudaProfilerStop", 100, 110);
  t.Kernel(140, 150, t.Call("cudaLaunchKernel", 130, 131));
  const LaneShares shares = Only(t, region);
  EXPECT_EQ(shares.window_start_ns, 40 * kUs);
  EXPECT_EQ(shares.window_end_ns, 70 * kUs);
  EXPECT_EQ(shares.lead_in_ns, 20 * kUs);
  EXPECT_EQ(shares.tail_ns, 30 * kUs);
  EXPECT_EQ(shares.kernels, 2u);
}

TEST(Region, OfTheProfilerApiIsAllWhenItStartedTheRecording) {
  v1::Region region;
  region.set_cuda_profiler_api(true);
  Tiny t;
  AddSteps(t, "epoch", 2);
  Timeline timeline = t.Build();
  EXPECT_THAT(ComputeShares(timeline, region, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cudaProfilerStart")));
  timeline.recorded_by_profiler_api = true;
  EXPECT_EQ(Only(timeline, region).kernels, 2u);
}

TEST(Region, ThatIsNotThereIsSaidWithTheMarkersThatAre) {
  Tiny t;
  AddSteps(t, "step", 2);
  EXPECT_THAT(ComputeShares(t.Build(), Nvtx("stap"), {}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"stap\""), HasSubstr("range \"step\" (2)"))));
}

TEST(Region, WithoutGpuWorkIsSaid) {
  Tiny t;
  AddSteps(t, "step", 2);
  t.Range("load", 1000, 2000);
  EXPECT_THAT(ComputeShares(t.Build(), Nvtx("load"), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("found none")));
}

// --- lanes -------------------------------------------------------------------

TEST(Lanes, OfProcessesAndDevicesAreNeverMixed) {
  Tiny t;
  t.Process(1).Device(0).Queued(GpuOpKind::kKernel, 0, 100);
  t.Process(1).Device(1).Queued(GpuOpKind::kKernel, 50, 80);
  t.Process(2).Device(0).Queued(GpuOpKind::kKernel, 90, 95);
  const Timeline timeline = t.Build();
  ASSERT_OK_AND_ASSIGN(const auto all, ComputeShares(timeline, {}, {}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].whole.window, 100 * kUs);
  EXPECT_EQ(all[1].whole.window, 30 * kUs);
  EXPECT_EQ(all[2].whole.window, 5 * kUs);
  EXPECT_EQ(all[2].process, 1u);
  EXPECT_EQ(all[1].lane, 1u);
}

TEST(Lanes, AreChosenByDeviceAndRank) {
  Tiny t;
  t.Process(1).Device(0).Queued(GpuOpKind::kKernel, 0, 100);
  t.Process(2).Device(1).Queued(GpuOpKind::kKernel, 50, 80);
  Timeline timeline = t.Build();
  timeline.processes[0].rank = 0;
  timeline.processes[1].rank = 1;
  v1::Constraints device;
  device.add_devices(1);
  ASSERT_OK_AND_ASSIGN(const auto by_device, ComputeShares(timeline, {}, device));
  ASSERT_EQ(by_device.size(), 1u);
  EXPECT_EQ(by_device[0].process, 1u);
  v1::Constraints rank;
  rank.add_ranks(0);
  ASSERT_OK_AND_ASSIGN(const auto by_rank, ComputeShares(timeline, {}, rank));
  ASSERT_EQ(by_rank.size(), 1u);
  EXPECT_EQ(by_rank[0].process, 0u);
  device.add_devices(5);
  EXPECT_THAT(ComputeShares(timeline, {}, device),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("found devices 0, 1")));
  rank.add_ranks(7);
  EXPECT_THAT(ComputeShares(timeline, {}, rank),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("found ranks 0, 1")));
}

TEST(Lanes, AProcessWithoutTheMarkerIsLeftOut) {
  Tiny t;
  t.Process(1);
  AddSteps(t, "step", 2);
  t.Process(2);
  AddSteps(t, "epoch", 2);
  ASSERT_OK_AND_ASSIGN(const auto all, ComputeShares(t.Build(), Nvtx("epoch"), {}));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].process, 1u);
}

TEST(Lanes, NoGpuDataIsNotAnIdleGpu) {
  Tiny t;
  t.Call("cudaMalloc", 0, 10);
  EXPECT_THAT(ComputeShares(t.Build(), {}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not an idle GPU")));
}

TEST(Counts, AreOfRowsThatStartInTheWindow) {
  Tiny t;
  t.Call("cudaDeviceSynchronize", 1, 2);  // before the window
  const int64_t two = t.Call("cudaLaunchKernel", 3, 4);
  t.Kernel(10, 20, two);
  t.Kernel(21, 30, two);
  t.Op(GpuOpKind::kCollective, 30, 40, t.Call("cudaLaunchKernel", 5, 6));
  t.Op(GpuOpKind::kMemset, 40, 41, t.Call("cudaMemsetAsync", 6, 7));
  t.Call("cudaStreamSynchronize", 11, 41);
  t.Thread(2).Call("cudaStreamSynchronize", 12, 13);  // launches nothing
  const LaneShares shares = Only(t);
  EXPECT_EQ(shares.kernels, 3u);
  EXPECT_EQ(shares.launch_calls, 2u);
  EXPECT_EQ(shares.graph_launches, 0u);
  EXPECT_EQ(shares.synchronizations, 1u);
  EXPECT_EQ(shares.synchronization_ns, 30 * kUs);
  EXPECT_THAT(shares.launching_threads, ElementsAre(0));
}

// --- against a slow model of the same rules ----------------------------------

// Causes of one gap, ns by ns, with no cleverness.
GapParts SlowGap(const ApiCalls& calls, int64_t from, int64_t to, uint32_t call,
                 const TimeModelOptions& options) {
  GapParts gap;
  if (call == kNone) {
    gap.unattributed = to - from;
    return gap;
  }
  if (calls.end_ns[call] <= from) {
    gap.queued = to - from;
    return gap;
  }
  bool sync = false;
  std::set<int64_t> covered;
  const int64_t until = std::min(to, calls.start_ns[call]);
  for (uint32_t i = 0; i < calls.size(); ++i) {
    if (calls.thread[i] != calls.thread[call]) continue;
    for (int64_t t = calls.start_ns[i]; t < calls.end_ns[i]; ++t) covered.insert(t);
    sync |= IsSynchronizing(calls.kind[i]) && calls.start_ns[i] < until && calls.end_ns[i] > from;
  }
  int64_t stretch = 0;
  for (int64_t t = from; t <= until; ++t) {
    const bool starts = std::any_of(calls.start_ns.begin(), calls.start_ns.end(),
                                    [&](int64_t s) { return s == t; });
    const bool call_here = t == until || covered.count(t) > 0;
    if (!call_here && !starts) {
      ++stretch;
      continue;
    }
    if (stretch >= options.host_stretch_ns) gap.host += stretch;
    if (stretch >= options.long_host_stretch_ns) gap.long_host += stretch;
    stretch = 0;
  }
  (sync ? gap.sync : gap.launch) = to - from - gap.host;
  return gap;
}

struct Random {
  std::mt19937 engine;
  int operator()(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  }
};

// One thread, so that the slow model's shortcut (a call that starts ends a
// stretch, on whichever thread) holds.
Timeline RandomTimeline(Random& random) {
  TimelineBuilder builder("nsys", 1 << 24);
  static constexpr ApiKind kKinds[] = {ApiKind::kOther, ApiKind::kLaunch, ApiKind::kSynchronize,
                                       ApiKind::kBlockingCopy};
  for (int i = 0; i < random(1, 12); ++i) {
    CallRow call;
    call.start_ns = random(0, 200);
    call.end_ns = call.start_ns + random(1, 20);
    call.correlation = i;
    call.kind = kKinds[random(0, 3)];
    EXPECT_TRUE(builder.AddCall(call).ok());
  }
  for (int i = 0; i < random(1, 15); ++i) {
    OpRow op;
    op.process = 0;
    op.start_ns = random(0, 250);
    op.end_ns = op.start_ns + random(0, 30);
    op.correlation = random(0, 14);
    op.kind = static_cast<GpuOpKind>(random(0, 5));
    EXPECT_TRUE(builder.AddOp(op).ok());
  }
  return *std::move(builder).Build();
}

TEST(TimeModel, AgreesWithASlowModelOnRandomTimelines) {
  Random random{std::mt19937(20261201)};
  TimeModelOptions options;
  options.host_stretch_ns = 10;
  options.long_host_stretch_ns = 20;
  for (int round = 0; round < 2000; ++round) {
    const Timeline timeline = RandomTimeline(random);
    const GpuOps& ops = timeline.processes[0].lanes[0].ops;
    ASSERT_OK_AND_ASSIGN(const auto all, ComputeShares(timeline, {}, {}, options));
    const LaneShares& shares = all[0];
    TimeParts slow;
    int64_t gap_start = -1;
    for (int64_t t = shares.window_start_ns; t <= shares.window_end_ns; ++t) {
      bool kernel = false, collective = false, transfer = false;
      uint32_t starts = kNone;
      bool any_starts = false;
      for (size_t i = 0; i < ops.size(); ++i) {
        if (ops.start_ns[i] == t && !any_starts) {
          any_starts = true;
          starts = ops.call[i];
        }
        if (t < ops.start_ns[i] || t >= ops.end_ns[i]) continue;
        collective |= ops.kind[i] == GpuOpKind::kCollective;
        const bool copy = ops.kind[i] == GpuOpKind::kCopyHostToDevice ||
                          ops.kind[i] == GpuOpKind::kCopyDeviceToHost;
        transfer |= copy;
        kernel |= !copy && ops.kind[i] != GpuOpKind::kCollective;
      }
      if (any_starts && gap_start >= 0) {
        const GapParts gap = SlowGap(timeline.processes[0].calls, gap_start, t, starts, options);
        slow.idle_queued += gap.queued;
        slow.idle_host += gap.host;
        slow.idle_sync += gap.sync;
        slow.idle_launch += gap.launch;
        slow.idle_unattributed += gap.unattributed;
        slow.host_stretches_1ms += gap.long_host;
        gap_start = -1;
      }
      if (t == shares.window_end_ns) break;
      slow.kernel += kernel;
      slow.exposed_communication += collective && !kernel;
      slow.exposed_transfer += transfer && !collective && !kernel;
      slow.communication += collective;
      slow.transfer += transfer;
      if (!kernel && !collective && !transfer && gap_start < 0) gap_start = t;
    }
    ASSERT_EQ(Us(shares.whole), Us(slow)) << "round " << round;
    ASSERT_EQ(shares.whole.communication, slow.communication);
    ASSERT_EQ(shares.whole.transfer, slow.transfer);
    ASSERT_EQ(shares.whole.host_stretches_1ms, slow.host_stretches_1ms) << "round " << round;
  }
}

}  // namespace
}  // namespace solward::timeline
