#include "agents/runtime/delegation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agents/runtime/delegation_journal.h"
#include "common/status_matchers.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;

DelegationIdentity Identity(const std::string& caller = "uid:1", const std::string& key = "k") {
  return {"delegation-1", caller, key, std::string(64, 'a')};
}

class CountingWatcher final : public DelegationWatcher {
 public:
  void OnChange() override { ++changes; }
  int changes = 0;
};

TEST(DelegationTest, TellsItsWatchersOfProgressAndEnd) {
  Delegation delegation(Identity(), {}, absl::InfiniteFuture());
  auto watcher = std::make_shared<CountingWatcher>();
  delegation.Watch(watcher);
  delegation.Watch(std::make_shared<CountingWatcher>());  // gone at once
  delegation.Report(v1::DELEGATION_PHASE_READING, "one", 0.25);
  delegation.End(v1::DelegationResult());
  delegation.Report(v1::DELEGATION_PHASE_READING, "too late", 1);
  EXPECT_EQ(watcher->changes, 2);
  uint64_t sequence = 0;
  EXPECT_EQ(delegation.NextProgress(sequence)->message(), "one");
  EXPECT_FALSE(delegation.NextProgress(sequence).has_value());
}

TEST(DelegationTest, ASlowStreamSeesTheNewestProgress) {
  Delegation delegation(Identity(), {}, absl::InfiniteFuture());
  for (int i = 1; i <= 1000; ++i) {
    delegation.Report(v1::DELEGATION_PHASE_READING, absl::StrCat(i), 0);
  }
  uint64_t sequence = 0;
  std::string last;
  int seen = 0;
  while (auto progress = delegation.NextProgress(sequence)) {
    last = progress->message();
    ++seen;
  }
  EXPECT_EQ(last, "1000");
  EXPECT_LT(seen, 100);
}

TEST(DelegationTest, WhatASpecialistReportsIsMadePresentable) {
  Delegation delegation(Identity(), {}, absl::InfiniteFuture());
  delegation.Report(v1::DELEGATION_PHASE_READING, std::string("\xff") + std::string(10'000, 'x'),
                    NAN);
  uint64_t sequence = 0;
  const auto progress = delegation.NextProgress(sequence);
  EXPECT_LE(progress->message().size(), 4'100u);
  EXPECT_EQ(progress->fraction(), -1);
  EXPECT_FALSE(progress->SerializeAsString().empty());
}

TEST(DelegationTest, TheFirstStopIsTheReason) {
  Delegation delegation(Identity(), {}, absl::InfiniteFuture());
  delegation.Stop(absl::DeadlineExceededError("late"));
  EXPECT_TRUE(delegation.stop_token().stop_requested());
  delegation.Stop(absl::UnavailableError("shutting down"));
  delegation.End(absl::CancelledError("stopped"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(delegation.end()->status));
}

TEST(DelegationTest, AResultInSpiteOfAStopIsAResult) {
  Delegation delegation(Identity(), {}, absl::InfiniteFuture());
  EXPECT_EQ(delegation.Cancel(), v1::CANCEL_OUTCOME_CANCELLED);
  EXPECT_EQ(delegation.Cancel(), v1::CANCEL_OUTCOME_ALREADY_CANCELLED);
  delegation.End(v1::DelegationResult());
  EXPECT_THAT(delegation.end()->status, IsOk());
  EXPECT_EQ(delegation.Cancel(), v1::CANCEL_OUTCOME_ALREADY_ENDED);
}

TEST(DelegationTest, ADeadlineOnlyGrows) {
  const absl::Time now = absl::Now();
  Delegation delegation(Identity(), {}, now);
  delegation.ExtendDeadline(now + absl::Seconds(5));
  delegation.ExtendDeadline(now + absl::Seconds(2));
  EXPECT_EQ(delegation.deadline(), now + absl::Seconds(5));
}

class DelegationJournalTest : public ::testing::Test {
 protected:
  DelegationJournalTest() {
    std::string pattern = ::testing::TempDir() + "/journalXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~DelegationJournalTest() override { std::filesystem::remove_all(folder_); }

  std::string OnlyFile() const {
    return std::filesystem::directory_iterator(folder_)->path().string();
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

DelegationEnd EndWithDriver(const std::string& driver) {
  DelegationEnd end;
  end.response.set_delegation_id("delegation-1");
  end.response.mutable_result()->mutable_environment()->set_driver_version(driver);
  return end;
}

TEST_F(DelegationJournalTest, GivesBackWhatWasWritten) {
  ASSERT_OK_AND_ASSIGN(auto journal, DelegationJournal::Open(folder_, 10));
  // Bytes that look like the record's own punctuation.
  ASSERT_THAT(journal->Write(Identity("uid:1", "12:\n3:"), EndWithDriver("5:\n\x01")), IsOk());
  const auto read = journal->Read("uid:1", "12:\n3:");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->identity().id, "delegation-1");
  EXPECT_EQ(read->identity().request_sha256, std::string(64, 'a'));
  EXPECT_EQ(read->end()->response.result().environment().driver_version(), "5:\n\x01");
  EXPECT_EQ(journal->Read("uid:2", "12:\n3:"), nullptr);
}

TEST_F(DelegationJournalTest, KeepsErrorsWithTheirReason) {
  ASSERT_OK_AND_ASSIGN(auto journal, DelegationJournal::Open(folder_, 10));
  DelegationEnd end;
  end.status = MakeError(absl::StatusCode::kCancelled, "DELEGATION_CANCELLED", "by its caller");
  ASSERT_THAT(journal->Write(Identity(), end), IsOk());
  const auto read = journal->Read("uid:1", "k");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(ErrorReason(read->end()->status), "DELEGATION_CANCELLED");
  EXPECT_EQ(read->end()->status.message(), "by its caller");
}

TEST_F(DelegationJournalTest, ADamagedRecordCountsAsNone) {
  ASSERT_OK_AND_ASSIGN(auto journal, DelegationJournal::Open(folder_, 10));
  ASSERT_THAT(journal->Write(Identity(), EndWithDriver("570.1")), IsOk());
  std::ifstream in(OnlyFile(), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& bad : {std::string(), good.substr(0, good.size() - 1), good + "x",
                                 flipped, std::string("solward delegation 1\n99999999999:")}) {
    ASSERT_THAT(journal->Write(Identity(), EndWithDriver("570.1")), IsOk());
    std::ofstream(OnlyFile(), std::ios::binary) << bad;
    EXPECT_EQ(journal->Read("uid:1", "k"), nullptr);
    EXPECT_EQ(Files(), 0);
  }
}

TEST_F(DelegationJournalTest, KeepsOnlyTheNewest) {
  {
    ASSERT_OK_AND_ASSIGN(auto journal, DelegationJournal::Open(folder_, 100));
    for (int i = 0; i < 20; ++i) {
      ASSERT_THAT(journal->Write(Identity("uid:1", absl::StrCat(i)), EndWithDriver("")), IsOk());
    }
    EXPECT_EQ(Files(), 20);
  }
  ASSERT_OK_AND_ASSIGN(auto journal, DelegationJournal::Open(folder_, 10));
  EXPECT_LE(Files(), 10);
  for (int i = 20; i < 60; ++i) {
    ASSERT_THAT(journal->Write(Identity("uid:1", absl::StrCat(i)), EndWithDriver("")), IsOk());
    EXPECT_LE(Files(), 10);
  }
  EXPECT_NE(journal->Read("uid:1", "59"), nullptr);
}

}  // namespace
}  // namespace solward::runtime
