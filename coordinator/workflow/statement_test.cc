#include "coordinator/workflow/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/gpu_peaks.h"
#include "common/problem_context.h"

namespace solward::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

StatementContent Read(absl::string_view text) { return ReadStatement(text, BuiltInCatalogue()); }

std::string Describe(const StatementContent& content) {
  std::string out;
  for (const v1::StatementReading& r : content.readings) {
    absl::StrAppend(&out, "  ", r.kind(), ": \"", r.text(), "\" -> ", r.meaning(), "\n");
  }
  return out;
}

// --- the independent list ----------------------------------------------------

YAML::Node Cases() {
  const char* root = std::getenv("SOLWARD_SOURCE_DIR");
  if (root == nullptr) {
    ADD_FAILURE() << "SOLWARD_SOURCE_DIR is not set";
    return YAML::Node(YAML::NodeType::Map);
  }
  return YAML::LoadFile(absl::StrCat(root, "/tests/data/statement_cases.yaml"));
}

void ExpectFigure(const YAML::Node& expect, const char* key,
                  const std::optional<StatedFigure>& figure) {
  ASSERT_EQ(figure.has_value(), expect[key].IsDefined()) << key;
  if (figure) {
    EXPECT_DOUBLE_EQ(figure->value, expect[key].as<double>()) << key;
  }
}

std::string RegionName(const std::optional<v1::Region>& region) {
  if (!region) return "";
  if (region->has_cuda_profiler_api()) return "cuda_profiler_api";
  if (region->has_profiler_step()) return "profiler_step";
  return absl::StrCat("nvtx:", region->nvtx_range());
}

void ExpectNames(const YAML::Node& expect, const StatementContent& content) {
  const auto strings = [&](const char* key) {
    return expect[key] ? expect[key].as<std::vector<std::string>>() : std::vector<std::string>{};
  };
  EXPECT_THAT(content.metrics, UnorderedElementsAreArray(strings("metrics")));
  EXPECT_THAT(content.files, UnorderedElementsAreArray(strings("files")));
  std::map<std::string, int64_t> dimensions;
  if (expect["dimensions"]) dimensions = expect["dimensions"].as<std::map<std::string, int64_t>>();
  EXPECT_EQ(content.dimensions, dimensions);
  EXPECT_EQ(DtypeName(content.dtype),
            expect["dtype"] ? expect["dtype"].as<std::string>() : DtypeName(v1::DTYPE_UNSPECIFIED));
  EXPECT_EQ(RegionName(content.region), expect["region"] ? expect["region"].as<std::string>() : "");
  EXPECT_EQ(content.kernel_pattern, expect["kernel"] ? expect["kernel"].as<std::string>() : "");
  EXPECT_EQ(OperationKindName(content.operation),
            expect["operation"] ? expect["operation"].as<std::string>() : "");
}

bool IsFoundAgain(const std::string& number, const StatementContent& content) {
  for (const v1::StatementReading& reading : content.readings) {
    if (absl::StrContains(reading.text(), number)) return true;
  }
  return false;
}

// Written by someone who saw only what a statement may say, not the grammar.
TEST(StatementCases, EveryCaseOfTheIndependentList) {
  const YAML::Node cases = Cases()["cases"];
  ASSERT_GE(cases.size(), 60u);
  for (const YAML::Node& c : cases) {
    const StatementContent content = Read(c["text"].as<std::string>());
    SCOPED_TRACE(absl::StrCat(c["id"].as<std::string>(), ": ", c["text"].as<std::string>(), "\n",
                              Describe(content)));
    const YAML::Node expect = c["expect"];
    ExpectNames(expect, content);
    ExpectFigure(expect, "flops_per_call", content.flops_per_call);
    ExpectFigure(expect, "flops_per_step", content.flops_per_step);
    ExpectFigure(expect, "batch_size", content.batch_size);
    ExpectFigure(expect, "sequence_length", content.sequence_length);
    ExpectFigure(expect, "step_time_s", content.step_time);
    ExpectFigure(expect, "world_size", content.world_size);
    EXPECT_THAT(content.twice, IsEmpty());
    EXPECT_THAT(content.not_understood, IsEmpty());
    for (const std::string& number : c["numbers"].as<std::vector<std::string>>()) {
      EXPECT_TRUE(IsFoundAgain(number, content)) << "number " << number << " is lost";
    }
  }
}

TEST(StatementCases, ReadingsQuoteTheTextAtTheirOffset) {
  for (const YAML::Node& c : Cases()["cases"]) {
    const std::string text = c["text"].as<std::string>();
    for (const v1::StatementReading& r : Read(text).readings) {
      EXPECT_EQ(text.substr(r.offset(), r.text().size()), r.text()) << c["id"].as<std::string>();
    }
  }
}

}  // namespace
}  // namespace solward::workflow
