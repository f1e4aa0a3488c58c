// Matchers for tests: EXPECT_THAT(expr, IsOk()), IsOkAndHolds(m),
// StatusIs(code, message_matcher), and ASSERT_OK_AND_ASSIGN(lhs, expr).
#ifndef SOLWARD_COMMON_STATUS_MATCHERS_H_
#define SOLWARD_COMMON_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/status.h"

namespace solward::testing {

inline const absl::Status& StatusOf(const absl::Status& s) { return s; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& s) {
  return s.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusIs, code, message, "") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()),
                                       result_listener);
}

MATCHER_P(IsOkAndHolds, matcher, "") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(matcher, *arg, result_listener);
}

}  // namespace solward::testing

#define ASSERT_OK_AND_ASSIGN_IMPL_(result, lhs, expr)     \
  auto result = (expr);                                   \
  ASSERT_TRUE(result.ok()) << result.status().ToString(); \
  lhs = *std::move(result)
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL_(SOLWARD_CONCAT_(solward_result_, __LINE__), lhs, expr)

#endif  // SOLWARD_COMMON_STATUS_MATCHERS_H_
