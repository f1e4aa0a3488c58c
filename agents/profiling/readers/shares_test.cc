// Every handed capture against the figures of an independent script
// (tests/data/shares.tsv), within one point; step times without a profiler are
// those of tests/data/ground_truth/plain.tsv.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/timeline/time_model.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using timeline::LaneShares;
using timeline::Timeline;
using timeline::TimeParts;

std::string DataDir() {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  return std::string(source != nullptr ? source : "(SOLWARD_SOURCE_DIR is not set)") +
         "/tests/data";
}

struct Row {
  std::map<std::string, std::string> cells;

  double Number(const std::string& column) const {
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(cells.at(column), &value)) << column;
    return value;
  }
};

std::vector<Row> ReadTsv(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> header;
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    if (header.empty()) {
      header = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < header.size() && i < cells.size(); ++i) row.cells[header[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

// Shares of a step in percent by DESIGN's rule for a known step time: the
// causes of idle keep their time in the order queued, host, sync; launch takes
// what is left. Busy beyond the step time: shares are of busy.
std::map<std::string, double> Rescale(const TimeParts& parts, double steps, double step_ns) {
  const double busy = parts.busy() / steps;
  const double whole = std::max(busy, step_ns);
  double left = whole - busy;
  const auto take = [&left](double wanted) {
    const double taken = std::min(left, wanted);
    left -= taken;
    return taken;
  };
  std::map<std::string, double> ns;
  ns["kernel"] = parts.kernel / steps;
  ns["comm_exposed"] = parts.exposed_communication / steps;
  ns["transfer"] = parts.exposed_transfer / steps;
  ns["queued"] = take(parts.idle_queued / steps);
  ns["host"] = take(parts.idle_host / steps);
  ns["sync"] = take(parts.idle_sync / steps);
  ns["launch"] = left;
  for (auto& [name, value] : ns) value *= 100 / whole;
  return ns;
}

struct Lane {
  const char* file;
  int device;
};

// Named here and not read from the table, so that they are known before the
// tests run.
constexpr Lane kLanes[] = {
    {"ground_truth/ew_chain.nsys.sqlite.gz", 0},
    {"ground_truth/ew_chain.torch.json.gz", 0},
    {"ground_truth/h2d.nsys.sqlite.gz", 0},
    {"ground_truth/h2d.torch.json.gz", 0},
    {"ground_truth/rnn_small.nsys.sqlite.gz", 0},
    {"ground_truth/rnn_small.torch.json.gz", 0},
    {"ground_truth/sync_gemm.nsys.sqlite.gz", 0},
    {"ground_truth/sync_gemm.torch.json.gz", 0},
    {"h200/axpy.nsys.sqlite.gz", 0},
    {"h200/comm.nsys.sqlite.gz", 0},
    {"h200/comm.nsys.sqlite.gz", 1},
    {"h200/comm.rank0.torch.json.gz", 0},
    {"h200/comm.rank1.torch.json.gz", 1},
    {"h200/graph.nsys.sqlite.gz", 0},
    {"h200/graph.torch.json.gz", 0},
    {"h200/input.nsys.sqlite.gz", 0},
    {"h200/input.torch.json.gz", 0},
    {"h200/launch.nsys.sqlite.gz", 0},
    {"h200/launch.torch.json.gz", 0},
    {"h200/sync.nsys.sqlite.gz", 0},
    {"h200/sync.torch.json.gz", 0},
};

// One point is asked for; the rules are the same, so only rounding is left.
constexpr double kPoint = 0.1;

class SharesOfCapture : public ::testing::TestWithParam<Lane> {};

TEST_P(SharesOfCapture, AgreeWithTheIndependentScript) {
  const std::string file = GetParam().file;
  const int device = GetParam().device;
  Row expected;
  for (const Row& row : ReadTsv(DataDir() + "/shares.tsv")) {
    if (row.cells.at("file") == file && row.Number("device") == device) expected = row;
  }
  ASSERT_FALSE(expected.cells.empty());
  const std::string path = DataDir() + "/" + file;
  ASSERT_OK_AND_ASSIGN(const Timeline timeline, absl::StrContains(file, ".nsys.")
                                                    ? ReadNsysSqlite(path, {})
                                                    : ReadTorchTrace(path, {}));
  ASSERT_OK_AND_ASSIGN(const std::vector<LaneShares> all,
                       timeline::ComputeShares(timeline, {}, {}));
  auto lane = std::find_if(all.begin(), all.end(), [&](const LaneShares& s) {
    return timeline.processes[s.process].lanes[s.lane].device == device;
  });
  ASSERT_NE(lane, all.end());

  const TimeParts& parts = lane->whole;
  EXPECT_EQ(lane->steps.size(), expected.Number("steps"));
  EXPECT_NEAR(parts.window * 1e-6, expected.Number("window_ms"), 0.0051);
  const auto percent = [&](int64_t ns) { return 100.0 * ns / parts.window; };
  EXPECT_NEAR(percent(parts.kernel), expected.Number("kernel"), kPoint);
  EXPECT_NEAR(percent(parts.exposed_communication), expected.Number("exposed_comm"), kPoint);
  EXPECT_NEAR(percent(parts.communication), expected.Number("all_comm"), kPoint);
  EXPECT_NEAR(percent(parts.exposed_transfer), expected.Number("exposed_transfer"), kPoint);
  EXPECT_NEAR(percent(parts.idle_launch), expected.Number("idle_launch"), kPoint);
  EXPECT_NEAR(percent(parts.idle_sync), expected.Number("idle_sync"), kPoint);
  EXPECT_NEAR(percent(parts.idle_host), expected.Number("idle_host"), kPoint);
  EXPECT_NEAR(percent(parts.idle_queued), expected.Number("idle_queued"), kPoint);
  EXPECT_EQ(parts.idle_unattributed, 0);
  EXPECT_EQ(parts.busy() + parts.idle(), parts.window);
  if (lane->steps.empty()) return;

  EXPECT_NEAR(lane->in_steps.busy() * 1e-6 / lane->steps.size(),
              expected.Number("busy_ms_per_step"), 0.0051);
  // All GPU work of these captures lies in their steps.
  EXPECT_EQ(lane->in_steps.window, parts.window);
  EXPECT_EQ(lane->step_marker, absl::StrContains(file, ".nsys.") ? "nvtx:step" : "ProfilerStep");

  const std::string rescaled = expected.cells.at("rescaled");
  if (rescaled == "-") return;
  const std::string workload =
      std::vector<std::string>(absl::StrSplit(file.substr(file.find('/') + 1), '.'))[0];
  double plain_ms = 0;
  for (const Row& row : ReadTsv(DataDir() + "/ground_truth/plain.tsv")) {
    if (row.cells.at("workload") == workload) plain_ms = row.Number("plain_ms_per_step");
  }
  ASSERT_GT(plain_ms, 0);
  const auto shares = Rescale(lane->in_steps, lane->steps.size(), plain_ms * 1e6);
  for (absl::string_view cell : absl::StrSplit(rescaled, ' ')) {
    const std::vector<std::string> name_value = absl::StrSplit(cell, '=');
    ASSERT_EQ(name_value.size(), 2u);
    double value = 0;
    ASSERT_TRUE(absl::SimpleAtod(name_value[1], &value));
    EXPECT_NEAR(shares.at(name_value[0]), value, kPoint) << name_value[0];
  }
}

std::string NameOf(const ::testing::TestParamInfo<Lane>& info) {
  std::string name = std::string(info.param.file) + "_" + std::to_string(info.param.device);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Handed, SharesOfCapture, ::testing::ValuesIn(kLanes), NameOf);

TEST(SharesTable, HasNoOtherCapture) {
  EXPECT_EQ(ReadTsv(DataDir() + "/shares.tsv").size(), std::size(kLanes));
}

}  // namespace
}  // namespace solward::readers
