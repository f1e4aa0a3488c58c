#include "agents/runtime/request_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "common/status_matchers.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::_;
using ::testing::Contains;

v1::DelegationRequest Good() {
  v1::DelegationRequest request;
  request.set_key("k");
  request.mutable_workload()->mutable_captures()->add_captures()->set_id("art-1");
  return request;
}

// The fields that are named when `change` was done to a good request.
std::vector<std::string> Offended(const std::function<void(v1::DelegationRequest&)>& change) {
  v1::DelegationRequest request = Good();
  change(request);
  std::vector<std::string> fields;
  for (const FieldViolation& v : FieldViolations(CheckDelegationRequest(request))) {
    fields.push_back(v.field);
  }
  return fields;
}

TEST(RequestChecksTest, TakesAGoodRequest) { EXPECT_THAT(CheckDelegationRequest(Good()), IsOk()); }

TEST(RequestChecksTest, NamesWhatIsMissing) {
  const absl::Status status = CheckDelegationRequest({});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_EQ(ErrorReason(status), "REQUEST_FIELD");
  ASSERT_EQ(FieldViolations(status).size(), 2);
  EXPECT_EQ(FieldViolations(status)[0].field, "delegation.key");
  EXPECT_EQ(FieldViolations(status)[1].field, "delegation.workload");
  EXPECT_THAT(Offended([](auto& r) { r.mutable_workload()->mutable_captures()->Clear(); }),
              Contains("delegation.workload.captures"));
}

TEST(RequestChecksTest, TextsHaveTheirCapsToTheByte) {
  struct Case {
    std::string field;
    size_t cap;
    std::function<void(v1::DelegationRequest&, std::string)> set;
  };
  const std::vector<Case> cases = {
      {"delegation.key", 128, [](auto& r, std::string s) { r.set_key(s); }},
      {"delegation.statement", 16 << 10, [](auto& r, std::string s) { r.set_statement(s); }},
      {"delegation.workload.description", 4 << 10,
       [](auto& r, std::string s) { r.mutable_workload()->set_description(s); }},
      {"delegation.workload.snippet.text", 256 << 10,
       [](auto& r, std::string s) { r.mutable_workload()->mutable_snippet()->set_text(s); }},
      {"delegation.workload.source_file.path", 4 << 10,
       [](auto& r, std::string s) { r.mutable_workload()->mutable_source_file()->set_path(s); }},
      {"delegation.constraints.kernel_pattern", 1 << 10,
       [](auto& r, std::string s) { r.mutable_constraints()->set_kernel_pattern(s); }},
      {"delegation.context.gpu_name", 4 << 10,
       [](auto& r, std::string s) { r.mutable_context()->set_gpu_name(s); }},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Offended([&](auto& r) { c.set(r, std::string(c.cap, 'x')); }), ::testing::IsEmpty())
        << c.field;
    EXPECT_THAT(Offended([&](auto& r) { c.set(r, std::string(c.cap + 1, 'x')); }),
                ::testing::ElementsAre(c.field));
  }
}

TEST(RequestChecksTest, ListsAndMapsAreCapped) {
  EXPECT_THAT(Offended([](auto& r) {
                for (int i = 0; i < 257; ++i) r.add_desired_metrics()->set_id("mfu");
              }),
              ::testing::ElementsAre("delegation.desired_metrics"));
  EXPECT_THAT(Offended([](auto& r) {
                auto& environment = *r.mutable_workload()->mutable_command()->mutable_environment();
                for (int i = 0; i < 257; ++i) environment[std::to_string(i)] = "x";
              }),
              ::testing::ElementsAre("delegation.workload.command.environment"));
  EXPECT_THAT(Offended([](auto& r) {
                for (int i = 0; i < 4097; ++i) {
                  r.mutable_workload()->mutable_command()->add_argv("x");
                }
              }),
              ::testing::ElementsAre("delegation.workload.command.argv"));
}

TEST(RequestChecksTest, NumbersAreFiniteAndTextsHoldNoZeroByte) {
  EXPECT_THAT(Offended([](auto& r) { r.mutable_context()->mutable_step_time()->set_value(NAN); }),
              ::testing::ElementsAre("delegation.context.step_time.value"));
  EXPECT_THAT(
      Offended([](auto& r) { r.mutable_context()->mutable_flops_per_call()->set_value(INFINITY); }),
      ::testing::ElementsAre("delegation.context.flops_per_call.value"));
  EXPECT_THAT(Offended([](auto& r) { r.set_key(std::string("a\0b", 3)); }),
              ::testing::ElementsAre("delegation.key"));
}

TEST(RequestChecksTest, AFloodOfOffencesIsCutShort) {
  EXPECT_LE(Offended([](auto& r) {
              for (int i = 0; i < 200; ++i) {
                r.add_desired_metrics()->set_id(std::string(5'000, 'x'));
              }
            }).size(),
            16u);
}

TEST(RequestChecksTest, FreeTextIsLinted) {
  for (const char* field : {"delegation.statement", "delegation.workload.description"}) {
    v1::DelegationRequest request = Good();
    const std::string how = "Use nsys profile --trace=cuda first.";
    if (std::string(field) == "delegation.statement") {
      request.set_statement(how);
    } else {
      request.mutable_workload()->set_description(how);
    }
    const absl::Status status = CheckDelegationRequest(request);
    EXPECT_EQ(ErrorReason(status), "DELEGATION_NOT_OUTCOME_ONLY");
    ASSERT_FALSE(FieldViolations(status).empty());
    EXPECT_EQ(FieldViolations(status)[0].field, field);
  }
}

TEST(RequestChecksTest, TheWorkloadsOwnCommandIsNotFreeText) {
  v1::DelegationRequest request = Good();
  auto& command = *request.mutable_workload()->mutable_command();
  for (const char* word : {"python", "train.py", "--batch-size", "32", "--out", "/tmp/x"}) {
    command.add_argv(word);
  }
  EXPECT_THAT(CheckDelegationRequest(request), IsOk());
}

TEST(RequestChecksTest, RecomputeTakesSoManyMetricsAtATime) {
  v1::RecomputeRequest request;
  for (int i = 0; i < 10'000; ++i) request.add_metrics()->set_key("m1");
  EXPECT_THAT(CheckRecomputeRequest(request), IsOk());
  request.add_metrics();
  EXPECT_THAT(CheckRecomputeRequest(request), StatusIs(absl::StatusCode::kInvalidArgument, _));
  v1::RecomputeRequest bad;
  bad.add_metrics()->set_value(NAN);
  ASSERT_EQ(FieldViolations(CheckRecomputeRequest(bad)).size(), 1);
  EXPECT_EQ(FieldViolations(CheckRecomputeRequest(bad))[0].field, "metrics[0].value");
}

}  // namespace
}  // namespace solward::runtime
