#include "agents/profiling/readers/trace_event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/profiling/readers/temp_capture.h"
#include "common/status_matchers.h"

namespace solward::readers {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Cut {
  absl::Status status;
  std::vector<std::string> events;
  std::vector<uint64_t> indices;
  std::vector<std::pair<std::string, std::string>> members;
  uint64_t broken = 0;
  uint64_t stray = 0;
  bool truncated = false;
};

Cut CutText(absl::string_view text, ReaderLimits limits = {}) {
  Cut cut;
  const TempCapture file(text);
  auto input = InputFile::Open(file.path(), limits);
  if (!input.ok()) {
    cut.status = input.status();
    return cut;
  }
  TraceEventStream stream(**input, limits, {"kept"});
  while (true) {
    const auto item = stream.Next();
    if (!item.ok()) {
      cut.status = item.status();
      break;
    }
    if (*item == TraceEventStream::Item::kEnd) break;
    if (*item == TraceEventStream::Item::kEvent) {
      cut.events.emplace_back(stream.text());
      cut.indices.push_back(stream.index());
    } else {
      cut.members.emplace_back(stream.key(), stream.text());
    }
  }
  cut.broken = stream.broken_events();
  cut.stray = stream.stray_bytes();
  cut.truncated = stream.truncated();
  return cut;
}

TEST(TraceEventStream, GivesEventsAndKeptMembersBeforeAndAfterThem) {
  const Cut cut = CutText(
      R"({"x": [1, {"kept": 2}], "kept": [ "a]" ], "traceEvents": [ {"ph":"X"}, {"a":{"b":[]}} ],
          "other": "}", "kept": 3})");
  EXPECT_THAT(cut.status, IsOk());
  EXPECT_THAT(cut.events, ElementsAre(R"({"ph":"X"})", R"({"a":{"b":[]}})"));
  EXPECT_THAT(cut.indices, ElementsAre(0, 1));
  EXPECT_THAT(cut.members, ElementsAre(std::pair<std::string, std::string>("kept", R"([ "a]" ])"),
                                       std::pair<std::string, std::string>("kept", "3")));
  EXPECT_FALSE(cut.truncated);
  EXPECT_EQ(cut.broken, 0u);
}

TEST(TraceEventStream, TakesAnArrayOfEventsAndAByteOrderMark) {
  EXPECT_THAT(CutText("\xEF\xBB\xBF [{\"a\":1},{\"b\":2}]").events, SizeIs(2));
}

TEST(TraceEventStream, IsNotLedAstrayByWhatStandsInStrings) {
  const std::string tricky =
      R"({"name":"}]{[\"\\\\\"},{\"ph\":\"", "path":"C:\\dir\\", "u":"\u007d"})";
  const Cut cut = CutText(absl::StrCat("{\"traceEvents\":[", tricky, ",", tricky, "]}"));
  EXPECT_THAT(cut.events, ElementsAre(tricky, tricky));
}

// Every place of every border against the blocks that are looked at together.
TEST(TraceEventStream, FindsTheSameEventsAtEveryOffset) {
  const std::string event = R"({"a":"\\","b":"\"","c":{"d":[[],{}]},"e":"\\\\\""})";
  for (size_t pad = 0; pad < 140; ++pad) {
    const std::string filler =
        absl::StrCat("{\"f\":\"", std::string(pad, '\\'), pad % 2 ? "\\" : "", "\"}");
    const Cut cut = CutText(absl::StrCat("[", filler, ",", event, ",", event, "]"));
    ASSERT_THAT(cut.events, ElementsAre(filler, event, event)) << pad;
  }
}

TEST(TraceEventStream, ReadsEventsLargerThanItsBuffer) {
  const std::string large = absl::StrCat("{\"a\":\"", std::string(3 << 20, 'x'), "\"}");
  const Cut cut = CutText(absl::StrCat("{\"skipped\":\"", std::string(3 << 20, 'y'),
                                       "\",\"list\":[", std::string(3 << 20, ' '),
                                       "],\"traceEvents\":[", large, ",{},", large, "]}"));
  EXPECT_THAT(cut.status, IsOk());
  EXPECT_THAT(cut.events, ElementsAre(large, "{}", large));
}

TEST(TraceEventStream, KeepsWhatIsCompleteWhenTheEndIsMissing) {
  for (const char* end : {"", ",", ", {", R"(, {"ph":"X)", R"(, {"ph": {"a")", "]"}) {
    const Cut cut = CutText(absl::StrCat(R"({"traceEvents":[{"ph":"X"},{"ph":"M"})", end));
    EXPECT_THAT(cut.status, IsOk()) << end;
    EXPECT_THAT(cut.events, SizeIs(2)) << end;
    EXPECT_TRUE(cut.truncated) << end;
  }
}

TEST(TraceEventStream, LosesOnlyTheEventWhoseBracketIsMissing) {
  const std::string good = R"({"ph":"X","name":"k","args":{"a":[1]}})";
  for (const char* bad : {R"({"ph":"X","args":{"a":1})", R"({"ph":"X","args":{"a":[1}})",
                          R"({"ph":"X","args":{"a":1)"}) {
    const Cut cut = CutText(
        absl::StrCat("{\"traceEvents\":[", good, ",", bad, ",", good, ",", good, "],\"kept\":1}"));
    EXPECT_THAT(cut.status, IsOk()) << bad;
    EXPECT_THAT(cut.events, ElementsAre(good, good, good)) << bad;
    EXPECT_EQ(cut.broken, 1u) << bad;
    EXPECT_THAT(cut.members, SizeIs(1)) << bad;
  }
}

TEST(TraceEventStream, FindsTheNextEventInALongRowBehindAMissingBracket) {
  const std::string good = R"({"ph":"X","name":"k","args":{"a":[1]}})";
  std::string text = R"([{"ph":"X","args":{"a":1},{"ph":"X","args":{"a":1})";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, ",", good);
  const Cut cut = CutText(absl::StrCat(text, "]"));
  EXPECT_THAT(cut.events, SizeIs(1000));
  EXPECT_EQ(cut.broken, 2u);
}

TEST(TraceEventStream, StepsOverASurplusBracketAndWhatIsNoObject) {
  const Cut cut = CutText(R"([{"a":1}}, 5, "s", [1,2], null, {"b":2}])");
  EXPECT_THAT(cut.events, ElementsAre(R"({"a":1})", R"({"b":2})"));
  EXPECT_EQ(cut.stray, 1u);
  EXPECT_EQ(cut.broken, 4u);
  EXPECT_THAT(cut.indices, ElementsAre(0, 5));
}

TEST(TraceEventStream, SaysWhenThisIsNoTrace) {
  EXPECT_THAT(CutText("hello, world").status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"hello, world\"")));
  EXPECT_THAT(CutText(" \n ").status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("white space")));
  EXPECT_THAT(CutText("{5: 6}").status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"5\" where a member")));
  EXPECT_THAT(CutText("{\"a\" 6}").status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no colon behind \"a\"")));
}

TEST(TraceEventStream, RefusesWhatIsNestedTooDeep) {
  ReaderLimits limits;
  limits.max_depth = 10;
  EXPECT_THAT(
      CutText(absl::StrCat("[{\"a\":", std::string(9, '['), std::string(9, ']'), "}]"), limits)
          .status,
      IsOk());
  EXPECT_THAT(
      CutText(absl::StrCat("[{\"a\":", std::string(1000, '['), std::string(1000, ']'), "}]"),
              limits)
          .status,
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("nested at most 10")));
}

TEST(TraceEventStream, ReadsHostileRepetitionInBoundedTime) {
  // Every event lacks its bracket, so that each looks into all that follow.
  std::string text = "[";
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&text, "{\"ph\":\"X\",\"args\":{\"a\":1},");
  ReaderLimits limits;
  limits.max_depth = 1 << 20;
  const Cut cut = CutText(text, limits);
  EXPECT_THAT(cut.status, IsOk());
  EXPECT_TRUE(cut.truncated);
}

}  // namespace
}  // namespace solward::readers
