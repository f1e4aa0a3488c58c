#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/temp_capture.h"
#include "agents/profiling/timeline/time_model.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using timeline::GpuOpKind;
using timeline::HostMemory;
using timeline::Timeline;

absl::StatusOr<Timeline> Read(absl::string_view text, const ReaderLimits& limits = {}) {
  const TempCapture file(text);
  return ReadTorchTrace(file.path(), limits);
}

uint64_t Statistic(const Timeline& timeline, const std::string& name) {
  for (const v1::ParseStatistic& s : timeline.statistics) {
    if (s.name() == name) return s.count();
  }
  return 0;
}

std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr char kLaunch[] =
    R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11,
        "ts": 100.000, "dur": 5.500, "args": {"External id": 1, "cbid": 211, "correlation": 7}})";
constexpr char kKernel[] =
    R"j({"ph": "X", "cat": "kernel", "name": "void k<float>(int)", "pid": 0, "tid": 7,
        "ts": 110.250, "dur": 4.125, "args": {"device": 0, "context": 1, "stream": 7,
        "correlation": 7, "grid": [1, 1, 1]}})j";
constexpr char kStep[] =
    R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 10, "tid": 11,
        "ts": 90, "dur": 40})";

std::string Trace(const std::vector<std::string>& events, const std::string& before = "",
                  const std::string& after = "") {
  std::string text = absl::StrCat("{", before, "\"traceEvents\": [");
  for (size_t i = 0; i < events.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", events[i]);
  return absl::StrCat(text, "]", after, "}");
}

// The only lane's operations.
const timeline::GpuOps& Ops(const Timeline& timeline) {
  static const timeline::GpuOps kNone;
  if (timeline.processes.size() != 1 || timeline.processes[0].lanes.size() != 1) {
    ADD_FAILURE() << "expected one process with one device";
    return kNone;
  }
  return timeline.processes[0].lanes[0].ops;
}

TEST(TorchTrace, BecomesOperationsCallsAndRanges) {
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kStep, kLaunch, kKernel})));
  EXPECT_EQ(t.tool, "torch.profiler");
  EXPECT_TRUE(t.has_gpu_data);
  EXPECT_THAT(t.statistics, IsEmpty());
  const timeline::GpuOps& ops = Ops(t);
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops.start_ns[0], 110250);
  EXPECT_EQ(ops.end_ns[0], 114375);
  EXPECT_EQ(t.names.Name(ops.name[0]), "void k<float>(int)");
  EXPECT_EQ(ops.stream[0], 7u);
  EXPECT_EQ(ops.row[0], 2u) << "index in traceEvents";
  const timeline::Process& process = t.processes[0];
  EXPECT_EQ(process.pid, 10u);
  EXPECT_THAT(process.threads, ElementsAre(11));
  ASSERT_EQ(ops.call[0], 0u);
  EXPECT_EQ(process.calls.start_ns[0], 100000);
  EXPECT_EQ(process.calls.end_ns[0], 105500);
  EXPECT_EQ(process.calls.kind[0], timeline::ApiKind::kLaunch);
  EXPECT_EQ(process.calls.row[0], 1u);
  ASSERT_EQ(process.ranges.size(), 1u);
  EXPECT_EQ(t.names.Name(process.ranges.name[0]), "ProfilerStep#3");
  EXPECT_EQ(process.ranges.end_ns[0], 130000);
}

TEST(TorchTrace, KeepsEveryDigitOfTimesSince1970) {
  ASSERT_OK_AND_ASSIGN(const Timeline t,
                       Read(Trace({R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,
                     "ts":1796074606728974.954,"dur":"1.001","args":{"device":0}})"})));
  EXPECT_EQ(Ops(t).start_ns[0], 1796074606728974954);
  EXPECT_EQ(Ops(t).end_ns[0], 1796074606728975955);
}

TEST(TorchTrace, TakesMetadataBeforeAndBehindTheEvents) {
  const std::string devices =
      R"("deviceProperties": [{"id": 1, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
          "computeMajor": 9, "computeMinor": 0, "numSms": 132}])";
  const std::string rank = R"("distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8})";
  const std::string base = R"("baseTimeNanoseconds": 1790857026000000000)";
  for (const bool behind : {false, true}) {
    const std::string members = absl::StrCat(devices, ", ", rank, ", ", base);
    ASSERT_OK_AND_ASSIGN(const Timeline t,
                         Read(behind ? Trace({kLaunch, kKernel}, "", ", " + members)
                                     : Trace({kLaunch, kKernel}, members + ", ")));
    ASSERT_THAT(t.gpus, SizeIs(1));
    EXPECT_EQ(t.gpus[0].device(), 1);
    EXPECT_EQ(t.gpus[0].name(), "NVIDIA H200");
    EXPECT_EQ(t.gpus[0].memory_bytes(), 150109880320u);
    EXPECT_EQ(t.gpus[0].compute_major(), 9u);
    EXPECT_EQ(t.gpus[0].sm_count(), 132u);
    EXPECT_EQ(t.processes.at(0).rank, 3);
    EXPECT_EQ(t.clock_base_ns, 1790857026000000000);
  }
}

TEST(TorchTrace, WithoutDistributedInfoHasNoRank) {
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kLaunch, kKernel})));
  EXPECT_EQ(t.processes.at(0).rank, -1);
  ASSERT_OK_AND_ASSIGN(const Timeline u,
                       Read(Trace({kLaunch, kKernel}, R"("distributedInfo": {"backend": "x"}, )")));
  EXPECT_EQ(u.processes.at(0).rank, -1);
}

TEST(TorchTrace, ReadsTheSpellingOf2021) {
  ASSERT_OK_AND_ASSIGN(
      const Timeline t,
      Read(Trace({R"({"ph": "X", "cat": "Operator", "name": "ProfilerStep#1", "pid": 5,
                     "tid": "5", "ts": 1610366662254362, "dur": 900})",
                  R"({"ph": "X", "cat": "Operator", "name": "aten::add", "pid": 5, "tid": "5",
                     "ts": 1610366662254363, "dur": 9})",
                  R"({"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5,
                     "tid": "5", "ts": 1610366662254370, "dur": 8, "args": {"correlation": 3}})",
                  R"({"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7",
                     "ts": 1610366662254380, "dur": 2, "args": {"device": 0, "correlation": 3}})",
                  R"j({"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0,
                     "tid": "stream 7", "ts": 1610366662254390, "dur": 1, "args": {}})j"},
                 R"("computeProperties": [{"id": 0, "name": "Tesla V100", "major": 7, "minor": 0,
                     "multiProcessorCount": 80}], )")));
  EXPECT_THAT(Ops(t).kind, ElementsAre(GpuOpKind::kKernel, GpuOpKind::kMemset));
  EXPECT_THAT(Ops(t).stream, ElementsAre(7, 7));
  EXPECT_EQ(Ops(t).call[0], 0u);
  EXPECT_EQ(t.processes[0].ranges.size(), 1u);
  EXPECT_EQ(t.gpus.at(0).compute_major(), 7u);
  EXPECT_EQ(t.gpus.at(0).sm_count(), 80u);
}

TEST(TorchTrace, ReadsDriverLaunchesAndHip) {
  ASSERT_OK_AND_ASSIGN(
      const Timeline t,
      Read(Trace({R"({"ph":"X","cat":"cuda_driver","name":"cuLaunchKernelEx","pid":1,"tid":1,
                      "ts":1,"dur":1,"args":{"correlation":1}})",
                  R"({"ph":"X","cat":"cuda_runtime","name":"hipExtModuleLaunchKernel","pid":1,
                      "tid":1,"ts":3,"dur":1,"args":{"correlation":2}})",
                  R"({"ph":"X","cat":"kernel","name":"k","pid":2,"tid":0,"ts":9,"dur":1,
                      "args":{"device":2,"stream":0,"correlation":2,"kind":"Dispatch Kernel"}})"})));
  EXPECT_THAT(t.processes[0].calls.kind,
              ElementsAre(timeline::ApiKind::kLaunch, timeline::ApiKind::kLaunch));
  EXPECT_EQ(t.processes[0].lanes.at(0).device, 2);
  EXPECT_EQ(Ops(t).call[0], 1u);
}

TEST(TorchTrace, TellsCopiesAndTheirHostMemoryByName) {
  std::vector<std::string> events;
  for (const char* name : {"Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)",
                           "Memcpy DtoH (Device -> Pageable)", "Memcpy DtoD (Device -> Device)",
                           "Memcpy PtoP (Device -> Device)", "Memcpy HtoD (Host -> Device)",
                           "Memcpy HtoH (Pageable -> Pinned)"}) {
    events.push_back(absl::StrCat(R"({"ph":"X","cat":"gpu_memcpy","name":")", name,
                                  R"(","pid":0,"tid":7,"ts":)", events.size() * 10,
                                  R"(,"dur":1,"args":{"device":0,"bytes":4096}})"));
  }
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace(events)));
  EXPECT_THAT(Ops(t).kind,
              ElementsAre(GpuOpKind::kCopyHostToDevice, GpuOpKind::kCopyHostToDevice,
                          GpuOpKind::kCopyDeviceToHost, GpuOpKind::kCopyDeviceToDevice,
                          GpuOpKind::kCopyDeviceToDevice, GpuOpKind::kCopyHostToDevice));
  EXPECT_THAT(Ops(t).host_memory,
              ElementsAre(HostMemory::kPageable, HostMemory::kPinned, HostMemory::kPageable,
                          HostMemory::kUnknown, HostMemory::kUnknown, HostMemory::kUnknown));
  EXPECT_THAT(Ops(t).bytes, ::testing::Each(4096u));
  EXPECT_EQ(Statistic(t, "copies_host_to_host"), 1u);
}

TEST(TorchTrace, SeesGraphsByNodeIdAndByCall) {
  const std::string graph = absl::StrReplaceAll(kLaunch, {{"cudaLaunchKernel", "cudaGraphLaunch"}});
  ASSERT_OK_AND_ASSIGN(const Timeline by_call, Read(Trace({graph, kKernel, kKernel})));
  EXPECT_THAT(Ops(by_call).in_graph, ElementsAre(1, 1));
  const std::string node =
      absl::StrReplaceAll(kKernel, {{"\"grid\"", "\"graph node id\": 5, \"grid\""}});
  const std::string no_node =
      absl::StrReplaceAll(kKernel, {{"\"grid\"", "\"graph node id\": 0, \"grid\""}});
  ASSERT_OK_AND_ASSIGN(const Timeline by_id, Read(Trace({kLaunch, node, no_node})));
  EXPECT_THAT(Ops(by_id).in_graph, ElementsAre(1, 0));
}

TEST(TorchTrace, TakesRangesOfTheCpuOnly) {
  const std::string on_gpu =
      absl::StrReplaceAll(kStep, {{"user_annotation", "gpu_user_annotation"}});
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kStep, on_gpu, kLaunch, kKernel})));
  EXPECT_EQ(t.processes[0].ranges.size(), 1u);
}

TEST(TorchTrace, LeavesOtherEventsAloneHoweverTheyAreWritten) {
  ASSERT_OK_AND_ASSIGN(
      const Timeline t,
      Read(Trace({R"({"ph":"s","id":1,"pid":1,"tid":1,"ts":1,"cat":"ac2g","name":"ac2g"})",
                  R"({"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1})",
                  R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"python"}})",
                  R"({"ph":"X","cat":"python_function","name":"f","pid":1,"tid":1,"ts":1,"dur":2})",
                  R"({"dur":2,"ts":1,"cat":"cpu_op","name":"aten::mm","ph":"X","pid":1,"tid":1})",
                  R"({"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"ts":1,"dur":2})",
                  R"j({"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans",
                      "tid":"PyTorch Profiler","ts":1,"dur":2})j",
                  kLaunch, kKernel})));
  EXPECT_THAT(t.statistics, IsEmpty());
  EXPECT_EQ(t.processes.size(), 1u);
  EXPECT_EQ(t.processes[0].calls.size(), 1u);
  EXPECT_EQ(Ops(t).row[0], 8u);
}

TEST(TorchTrace, TakesMembersOfAnEventInAnyOrder) {
  ASSERT_OK_AND_ASSIGN(
      const Timeline t,
      Read(Trace({kLaunch, R"({"args":{"correlation":"7","stream":"9","device":"0"},"dur":"4.5",
                               "ts":"110","tid":7,"pid":0,"name":"k\u0041","cat":"kernel",
                               "ph":"X"})"})));
  EXPECT_EQ(Ops(t).end_ns[0], 114500);
  EXPECT_EQ(Ops(t).stream[0], 9u);
  EXPECT_EQ(Ops(t).call[0], 0u);
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "kA");
}

TEST(TorchTrace, CountsNumbersThatAreNone) {
  std::vector<std::string> events = {kLaunch, kKernel};
  for (const char* number : {"Infinity", "NaN", "-Infinity", "null", "\"abc\"", "1e300",
                             "99999999999999999999", "true"}) {
    events.push_back(absl::StrReplaceAll(kKernel, {{"4.125", number}}));
  }
  events.push_back(absl::StrReplaceAll(kKernel, {{"\"dur\": 4.125,", ""}}));
  events.push_back(absl::StrReplaceAll(kKernel, {{"4.125", "-1"}}));
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace(events)));
  EXPECT_EQ(Ops(t).size(), 1u);
  EXPECT_EQ(Statistic(t, "events_with_bad_number"), 9u);
  EXPECT_EQ(Statistic(t, "gpu_operations_with_absurd_time"), 1u);
}

TEST(TorchTrace, TakesInfinityWhereItDoesNotMatter) {
  const std::string kernel = absl::StrReplaceAll(
      kKernel, {{"\"grid\"", "\"blocks per SM\": Infinity, \"x\": NaN, \"grid\""}});
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kLaunch, kernel})));
  EXPECT_EQ(Ops(t).size(), 1u);
  EXPECT_EQ(Ops(t).call[0], 0u);
}

TEST(TorchTrace, RepairsControlCharactersAndBadUtf8InNames) {
  const std::string control = absl::StrReplaceAll(kKernel, {{"void k<float>(int)", "a\x01\n\tb"}});
  const std::string latin = absl::StrReplaceAll(kKernel, {{"void k<float>(int)", "caf\xE9"}});
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kLaunch, control, latin})));
  ASSERT_EQ(Ops(t).size(), 2u);
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "a   b");
  EXPECT_EQ(t.names.Name(Ops(t).name[1]), "caf\xEF\xBF\xBD");
  EXPECT_EQ(Statistic(t, "events_repaired"), 2u);
}

TEST(TorchTrace, KeepsCompleteEventsWhenTheEndIsMissing) {
  const std::string whole = Trace({kStep, kLaunch, kKernel, kKernel});
  for (const size_t cut : {size_t{1}, size_t{2}, size_t{3}, size_t{30}, size_t{100}}) {
    ASSERT_OK_AND_ASSIGN(const Timeline t, Read(whole.substr(0, whole.size() - cut)));
    EXPECT_GE(Ops(t).size(), 1u) << cut;
    EXPECT_EQ(Statistic(t, "trace_truncated"), 1u) << cut;
    EXPECT_EQ(Ops(t).size() + Statistic(t, "events_broken"), 2u) << cut;
  }
}

TEST(TorchTrace, LosesOnlyTheEventWithAMissingBrace) {
  const std::string broken(kKernel, sizeof(kKernel) - 2);
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kLaunch, kKernel, broken, kKernel, kKernel})));
  EXPECT_EQ(Ops(t).size(), 3u);
  EXPECT_EQ(Statistic(t, "events_broken"), 1u);
}

TEST(TorchTrace, OfGzIsReadAndATruncatedOneSaid) {
  const std::string gz = Gzip(Trace({kStep, kLaunch, kKernel}));
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(gz));
  EXPECT_EQ(Ops(t).size(), 1u);
  EXPECT_THAT(Read(gz.substr(0, gz.size() / 2)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("truncated")));
}

TEST(TorchTrace, WithoutGpuWorkIsNotAnIdleGpu) {
  for (const auto& events :
       {std::vector<std::string>{}, std::vector<std::string>{kStep, kLaunch}}) {
    ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace(events)));
    EXPECT_FALSE(t.has_gpu_data);
    EXPECT_EQ(Statistic(t, "no_gpu_operations"), 1u);
    EXPECT_THAT(timeline::ComputeShares(t, {}, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not an idle GPU")));
  }
}

TEST(TorchTrace, WithoutCallsSaysThatCausesAreUnknown) {
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kKernel})));
  EXPECT_EQ(Statistic(t, "no_api_calls"), 1u);
  EXPECT_EQ(Statistic(t, "gpu_operations_without_call"), 1u);
}

TEST(TorchTrace, OfAnotherKindIsSaid) {
  EXPECT_THAT(Read(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(Read("SQLite format 3"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("torch.profiler")));
  EXPECT_THAT(Read(R"({"schema": "1.0.1", "nodes": []})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("traceEvents")));
  EXPECT_THAT(Read("[[1, 2], [3, 4]]"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no complete event")));
  EXPECT_THAT(ReadTorchTrace("/nonexistent/x.json", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("x.json")));
}

TEST(TorchTrace, KeepsItsLimits) {
  ReaderLimits limits;
  limits.max_entries = 2;
  EXPECT_THAT(Read(Trace({kStep, kLaunch, kKernel}), limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 events")));
  limits = {};
  limits.max_model_bytes = 100;
  EXPECT_THAT(Read(Trace({kStep, kLaunch, kKernel}), limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("100 bytes")));
  limits = {};
  limits.max_depth = 2;
  EXPECT_THAT(Read(Trace({kStep, kLaunch, kKernel}), limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("nested")));
  limits = {};
  limits.max_string_bytes = 4;
  ASSERT_OK_AND_ASSIGN(const Timeline t, Read(Trace({kLaunch, kKernel}), limits));
  EXPECT_EQ(t.names.Name(Ops(t).name[0]), "void");
  EXPECT_EQ(Statistic(t, "strings_cut"), 2u);
}

TEST(TorchTrace, KeepsProcessesOfAMergedTraceApart) {
  const auto in = [](const char* event, const char* pid, const char* correlation) {
    return absl::StrReplaceAll(
        event, {{"\"pid\": 10", absl::StrCat("\"pid\": ", pid)},
                {"\"correlation\": 7", absl::StrCat("\"correlation\": ", correlation)}});
  };
  ASSERT_OK_AND_ASSIGN(const Timeline t,
                       Read(Trace({in(kLaunch, "10", "7"), in(kLaunch, "20", "8"),
                                   in(kKernel, "0", "8"), in(kKernel, "0", "7")})));
  ASSERT_EQ(t.processes.size(), 2u);
  EXPECT_THAT(t.processes[0].lanes.at(0).ops.row, ElementsAre(3));
  EXPECT_THAT(t.processes[1].lanes.at(0).ops.row, ElementsAre(2));
}

// --- captures of an H200 -----------------------------------------------------

Timeline Captured(const std::string& name) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  auto timeline =
      ReadTorchTrace(absl::StrCat(source != nullptr ? source : "(SOLWARD_SOURCE_DIR is not set)",
                                  "/tests/data/h200/", name),
                     {});
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *std::move(timeline) : Timeline();
}

TEST(TorchCapture, OfManySmallKernelsIsWhole) {
  const Timeline t = Captured("launch.torch.json.gz");
  EXPECT_THAT(t.statistics, IsEmpty());
  EXPECT_EQ(t.gpus.at(0).name(), "NVIDIA H200");
  // 12,270 kernels, 6 copies; 12,284 runtime and 114 driver calls.
  EXPECT_EQ(Ops(t).size(), 12276u);
  EXPECT_EQ(t.processes[0].calls.size(), 12398u);
  EXPECT_EQ(t.processes[0].ranges.size(), 18u);
  EXPECT_THAT(t.processes[0].threads, ElementsAre(1346, 1371)) << "forward and backward";
}

TEST(TorchCapture, OfARankKnowsIt) {
  for (int rank : {0, 1}) {
    const Timeline t = Captured(absl::StrCat("comm.rank", rank, ".torch.json.gz"));
    EXPECT_EQ(t.processes.at(0).rank, rank);
    EXPECT_EQ(t.processes.at(0).lanes.at(0).device, rank);
    EXPECT_EQ(t.gpus.size(), 2u);
    uint64_t collectives = 0;
    for (GpuOpKind kind : Ops(t).kind) collectives += kind == GpuOpKind::kCollective;
    EXPECT_EQ(collectives, 24u);
  }
}

TEST(TorchCapture, OfAGraphAttributesEveryKernelToItsLaunch) {
  const Timeline t = Captured("graph.torch.json.gz");
  EXPECT_EQ(Ops(t).size(), 12276u);
  EXPECT_THAT(Ops(t).in_graph, ::testing::Each(1));
  ASSERT_OK_AND_ASSIGN(const auto shares, timeline::ComputeShares(t, {}, {}));
  EXPECT_EQ(shares.at(0).graph_launches, 6u);
  EXPECT_EQ(shares.at(0).graph_operations, 12276u);
}

TEST(TorchCapture, ShowsUnpinnedCopies) {
  const Timeline t = Captured("input.torch.json.gz");
  uint64_t pageable = 0;
  for (HostMemory memory : Ops(t).host_memory) pageable += memory == HostMemory::kPageable;
  EXPECT_EQ(pageable, 8u);
}

}  // namespace
}  // namespace solward::readers
