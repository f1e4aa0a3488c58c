#include "agents/profiling/timeline/timeline_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/status_matchers.h"

namespace solward::timeline {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kRoom = 1 << 20;

uint64_t Statistic(const Timeline& timeline, const std::string& name) {
  for (const v1::ParseStatistic& s : timeline.statistics) {
    if (s.name() == name) return s.count();
  }
  return 0;
}

TEST(TimelineBuilder, SortsOperationsByStartAndCallsByThread) {
  TimelineBuilder builder("nsys", kRoom);
  ASSERT_THAT(builder.AddCall({.process = 7, .thread = 20, .start_ns = 50, .end_ns = 60}), IsOk());
  ASSERT_THAT(builder.AddCall({.process = 7, .thread = 10, .start_ns = 70, .end_ns = 80}), IsOk());
  ASSERT_THAT(builder.AddCall({.process = 7, .thread = 20, .start_ns = 10, .end_ns = 20}), IsOk());
  ASSERT_THAT(builder.AddOp({.process = 7, .start_ns = 90, .end_ns = 95}), IsOk());
  ASSERT_THAT(builder.AddOp({.process = 7, .start_ns = 80, .end_ns = 85}), IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  ASSERT_EQ(timeline.processes.size(), 1u);
  const Process& process = timeline.processes[0];
  EXPECT_EQ(process.pid, 7u);
  EXPECT_THAT(process.threads, ElementsAre(10, 20));
  EXPECT_THAT(process.calls.start_ns, ElementsAre(70, 10, 50));
  EXPECT_THAT(process.calls.thread, ElementsAre(0, 1, 1));
  EXPECT_THAT(process.calls.thread_begin, ElementsAre(0, 1, 3));
  EXPECT_THAT(process.lanes.at(0).ops.start_ns, ElementsAre(80, 90));
}

TEST(TimelineBuilder, JoinsOperationsWithCallsOfTheirOwnProcess) {
  TimelineBuilder builder("nsys", kRoom);
  ASSERT_THAT(builder.AddCall({.process = 1, .start_ns = 0, .end_ns = 1, .correlation = 5}),
              IsOk());
  ASSERT_THAT(builder.AddCall({.process = 2, .start_ns = 2, .end_ns = 3, .correlation = 5}),
              IsOk());
  ASSERT_THAT(builder.AddOp({.process = 2, .start_ns = 9, .end_ns = 10, .correlation = 5}), IsOk());
  ASSERT_THAT(builder.AddOp({.process = 2, .start_ns = 10, .end_ns = 11, .correlation = 6}),
              IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  ASSERT_EQ(timeline.processes.size(), 2u);
  EXPECT_TRUE(timeline.processes[0].lanes.empty());
  EXPECT_THAT(timeline.processes[1].lanes.at(0).ops.call, ElementsAre(0, kNone));
  EXPECT_EQ(Statistic(timeline, "gpu_operations_without_call"), 1u);
}

TEST(TimelineBuilder, JoinsFarApartCorrelationsToo) {
  TimelineBuilder builder("nsys", kRoom);
  ASSERT_THAT(builder.AddCall({.start_ns = 0, .end_ns = 1, .correlation = 3}), IsOk());
  ASSERT_THAT(builder.AddCall({.start_ns = 2, .end_ns = 3, .correlation = int64_t{1} << 50}),
              IsOk());
  ASSERT_THAT(
      builder.AddOp({.process = 0, .start_ns = 9, .end_ns = 10, .correlation = int64_t{1} << 50}),
      IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  EXPECT_THAT(timeline.processes[0].lanes.at(0).ops.call, ElementsAre(1));
}

TEST(TimelineBuilder, OfCallsThatShareACorrelationTheLaunchCounts) {
  TimelineBuilder builder("nsys", kRoom);
  ASSERT_THAT(builder.AddCall({.start_ns = 0, .end_ns = 1, .correlation = 3}), IsOk());
  ASSERT_THAT(
      builder.AddCall({.start_ns = 2, .end_ns = 3, .correlation = 3, .kind = ApiKind::kLaunch}),
      IsOk());
  ASSERT_THAT(builder.AddOp({.process = 0, .start_ns = 9, .end_ns = 10, .correlation = 3}), IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  EXPECT_THAT(timeline.processes[0].lanes.at(0).ops.call, ElementsAre(1));
}

TEST(TimelineBuilder, SeesGraphOperationsByTheirCallWhenTheToolGivesNoId) {
  TimelineBuilder builder("torch.profiler", kRoom);
  ASSERT_THAT(builder.AddCall(
                  {.start_ns = 0, .end_ns = 1, .correlation = 3, .kind = ApiKind::kGraphLaunch}),
              IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = 9, .end_ns = 10, .correlation = 3}), IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = 11, .end_ns = 12, .correlation = 3}), IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  EXPECT_THAT(timeline.processes.at(0).lanes.at(0).ops.in_graph, ElementsAre(1, 1));
}

TEST(TimelineBuilder, FindsTheProcessOfAnOperationByItsCorrelation) {
  TimelineBuilder builder("torch.profiler", kRoom);
  ASSERT_THAT(builder.AddCall({.process = 1, .start_ns = 0, .end_ns = 1, .correlation = 5}),
              IsOk());
  ASSERT_THAT(builder.AddCall({.process = 2, .start_ns = 2, .end_ns = 3, .correlation = 6}),
              IsOk());
  ASSERT_THAT(builder.AddCall({.process = 2, .start_ns = 4, .end_ns = 5, .correlation = 5}),
              IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = 9, .end_ns = 10, .correlation = 6}), IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = 11, .end_ns = 12, .correlation = 5}), IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  ASSERT_EQ(timeline.processes.size(), 2u);
  EXPECT_THAT(timeline.processes[1].lanes.at(0).ops.start_ns, ElementsAre(9));
  EXPECT_THAT(timeline.processes[0].lanes.at(0).ops.start_ns, ElementsAre(11));
  EXPECT_EQ(Statistic(timeline, "gpu_operations_of_ambiguous_process"), 1u);
}

TEST(TimelineBuilder, CountsAndLeavesOutTimesThatMakeNoSense) {
  TimelineBuilder builder("nsys", kRoom);
  ASSERT_THAT(builder.AddOp({.start_ns = 10, .end_ns = 9}), IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = -5, .end_ns = 9}), IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = kMaxTimeNs + 1, .end_ns = kMaxTimeNs + 2}), IsOk());
  ASSERT_THAT(builder.AddOp({.start_ns = 0, .end_ns = kMaxDurationNs + 1}), IsOk());
  ASSERT_THAT(builder.AddOp({.device = -1, .start_ns = 0, .end_ns = 1}), IsOk());
  ASSERT_THAT(builder.AddCall({.start_ns = 10, .end_ns = 9}), IsOk());
  ASSERT_THAT(builder.AddRange({.start_ns = 10, .end_ns = 9}), IsOk());
  ASSERT_OK_AND_ASSIGN(Timeline timeline, std::move(builder).Build());
  EXPECT_FALSE(timeline.has_gpu_data);
  EXPECT_EQ(Statistic(timeline, "gpu_operations_with_absurd_time"), 4u);
  EXPECT_EQ(Statistic(timeline, "gpu_operations_without_device"), 1u);
  EXPECT_EQ(Statistic(timeline, "api_calls_with_absurd_time"), 1u);
  EXPECT_EQ(Statistic(timeline, "ranges_with_absurd_time"), 1u);
}

TEST(TimelineBuilder, RefusesMoreRowsThanFit) {
  TimelineBuilder builder("nsys", 1000);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = builder.AddOp({.start_ns = i, .end_ns = i});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000 bytes")));
}

TEST(TimelineBuilder, RefusesMoreDevicesThanAnyMachineHas) {
  TimelineBuilder builder("nsys", kRoom);
  for (int i = 0; i < 300; ++i) {
    ASSERT_THAT(builder.AddOp({.device = i, .start_ns = i, .end_ns = i}), IsOk());
  }
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found 300")));
}

}  // namespace
}  // namespace solward::timeline
