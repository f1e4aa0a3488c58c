#include "common/id.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "absl/strings/match.h"

namespace solward {
namespace {

constexpr char kCrockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// Milliseconds in the first ten characters, by the ULID specification.
int64_t TimeOf(const std::string& id) {
  int64_t value = 0;
  for (const char c : id.substr(id.find('-') + 1, 10)) {
    value = value * 32 + static_cast<int64_t>(std::string(kCrockford).find(c));
  }
  return value;
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST(NewIdTest, IsThePrefixAndAUlid) {
  const std::string id = NewId("an");
  ASSERT_EQ(id.size(), 29u);
  EXPECT_TRUE(absl::StartsWith(id, "an-"));
  EXPECT_EQ(id.substr(3).find_first_not_of(kCrockford), std::string::npos) << id;
}

TEST(NewIdTest, HoldsTheTimeInFrontSoThatIdsSort) {
  const int64_t before = NowMs();
  const std::string id = NewId("x");
  EXPECT_LE(before, TimeOf(id));
  EXPECT_LE(TimeOf(id), NowMs());
}

TEST(NewIdTest, NeverRepeats) {
  std::set<std::string> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(NewId("x"));
  EXPECT_EQ(ids.size(), 2000u);
}

}  // namespace
}  // namespace solward
