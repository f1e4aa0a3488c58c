#include "coordinator/store/sqlite_store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status_matchers.h"
#include "coordinator/store/schema.h"

namespace solward::store {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status NoChange(v1::Analysis&) { return absl::OkStatus(); }

std::function<absl::Status(v1::Analysis&)> ToState(v1::AnalysisState state) {
  return [state](v1::Analysis& a) {
    a.set_state(state);
    return absl::OkStatus();
  };
}

Transition Message(const std::string& text) {
  Transition t;
  t.event.set_message(text);
  return t;
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "store-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/store.db";
    Open();
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Open() {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(store_, OpenSqliteStore(path_));
  }
  static v1::Analysis NewAnalysis(const std::string& id, const std::string& caller = "uid:1000") {
    v1::Analysis a;
    a.set_id(id);
    a.set_caller(caller);
    a.set_key("key-" + id);
    a.set_state(v1::ANALYSIS_STATE_QUEUED);
    a.mutable_request()->set_notes("of " + id);
    return a;
  }
  void Add(const std::string& id, const std::string& caller = "uid:1000") {
    ASSERT_THAT(store_->Create(NewAnalysis(id, caller), "hash", "queued"), IsOk());
  }
  std::vector<std::string> Ids(const ListQuery& query) {
    auto result = store_->List(query);
    EXPECT_THAT(result, IsOk());
    std::vector<std::string> ids;
    for (const auto& a : result->analyses) ids.push_back(a.id());
    return ids;
  }

  std::string folder_, path_;
  std::unique_ptr<Store> store_;
};

TEST_F(SqliteStoreTest, AnAnalysisIsKeptWithItsFirstEvent) {
  Add("a1");
  ASSERT_OK_AND_ASSIGN(const v1::Analysis got, store_->Get("a1"));
  EXPECT_EQ(got.state(), v1::ANALYSIS_STATE_QUEUED);
  EXPECT_EQ(got.request().notes(), "of a1");
  EXPECT_EQ(got.last_sequence(), 1u);
  EXPECT_GT(got.submit_time().seconds(), 0);
  ASSERT_OK_AND_ASSIGN(const auto events, store_->EventsAfter("a1", 0, 10));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].sequence(), 1u);
  EXPECT_EQ(events[0].message(), "queued");
  EXPECT_EQ(events[0].state(), v1::ANALYSIS_STATE_QUEUED);
}

TEST_F(SqliteStoreTest, AnUnknownAnalysisIsNotFound) {
  EXPECT_THAT(store_->Get("nope"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("nope")));
  EXPECT_THAT(store_->Append("nope", Message("x"), NoChange),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nope")));
}

TEST_F(SqliteStoreTest, AKeyIsScopedToItsCallerAndBoundToTheRequest) {
  Add("a1");
  v1::Analysis again = NewAnalysis("a2");
  again.set_key("key-a1");
  ASSERT_OK_AND_ASSIGN(const Created same, store_->Create(again, "hash", "queued"));
  EXPECT_TRUE(same.existed);
  EXPECT_EQ(same.analysis.id(), "a1");

  const auto other_request = store_->Create(again, "another hash", "queued");
  EXPECT_THAT(other_request, StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("a1")));
  EXPECT_EQ(ErrorReason(other_request.status()), "KEY_REUSED");
  EXPECT_THAT(store_->FindByKey("uid:1000", "key-a1", "another hash"),
              StatusIs(absl::StatusCode::kAlreadyExists, _));

  again.set_caller("uid:1001");
  ASSERT_OK_AND_ASSIGN(const Created other, store_->Create(again, "another hash", "queued"));
  EXPECT_FALSE(other.existed);
  EXPECT_THAT(store_->FindByKey("uid:1002", "key-a1", "hash"),
              StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_F(SqliteStoreTest, EventsAreNumberedWithoutGapsAndCarryTheStateTheyLeadTo) {
  Add("a1");
  Add("a2");
  for (const char* text : {"one", "two"}) {
    ASSERT_THAT(store_->Append("a1", Message(text), NoChange), IsOk());
    ASSERT_THAT(store_->Append("a2", Message(text), NoChange), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const Appended end, store_->Append("a1", Message("three"),
                                                          ToState(v1::ANALYSIS_STATE_SUCCEEDED)));
  EXPECT_EQ(end.event.sequence(), 4u);
  EXPECT_EQ(end.event.state(), v1::ANALYSIS_STATE_SUCCEEDED);
  EXPECT_TRUE(end.analysis.has_end_time());
  ASSERT_OK_AND_ASSIGN(const auto events, store_->EventsAfter("a1", 1, 2));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].sequence(), 2u);
  EXPECT_EQ(events[1].message(), "two");
  EXPECT_THAT(*store_->EventsAfter("a1", UINT64_MAX, 10), IsEmpty());
}

TEST_F(SqliteStoreTest, ARefusedUpdateLeavesNothingBehind) {
  Add("a1");
  Transition t = Message("refused");
  t.documents.emplace_back(Document::kPlan, "plan");
  EXPECT_THAT(store_->Append("a1", t,
                             [](v1::Analysis& a) {
                               a.set_state(v1::ANALYSIS_STATE_FAILED);
                               return absl::AbortedError("no");
                             }),
              StatusIs(absl::StatusCode::kAborted, "no"));
  EXPECT_EQ(store_->Get("a1")->state(), v1::ANALYSIS_STATE_QUEUED);
  EXPECT_EQ(store_->EventsAfter("a1", 0, 10)->size(), 1u);
  EXPECT_EQ(*store_->Read("a1", Document::kPlan), std::nullopt);
}

TEST_F(SqliteStoreTest, DocumentsSurviveReopeningByteForByte) {
  Add("a1");
  std::string bytes(300000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  Transition t = Message("reported");
  t.documents.emplace_back(Document::kReport, bytes);
  t.documents.emplace_back(Document::kPlan, "");
  ASSERT_THAT(store_->Append("a1", t, ToState(v1::ANALYSIS_STATE_SUCCEEDED)), IsOk());
  Open();
  EXPECT_EQ(*store_->Read("a1", Document::kReport), bytes);
  EXPECT_EQ(*store_->Read("a1", Document::kPlan), "");
  EXPECT_EQ(*store_->Read("a1", Document::kMeasurement), std::nullopt);
}

TEST_F(SqliteStoreTest, WhatWasAcknowledgedSurvivesAKill) {
  store_.reset();
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = OpenSqliteStore(path_);
    if (!store.ok() || !(*store)->Create(NewAnalysis("a1"), "hash", "queued").ok()) _exit(1);
    Transition t = Message("reported");
    t.documents.emplace_back(Document::kReport, "the report");
    if (!(*store)->Append("a1", t, ToState(v1::ANALYSIS_STATE_SUCCEEDED)).ok()) _exit(1);
    if (write(acknowledged[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(1);
  }
  close(acknowledged[1]);
  char c = 0;
  ASSERT_EQ(read(acknowledged[0], &c, 1), 1);
  close(acknowledged[0]);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  Open();
  EXPECT_EQ(store_->Get("a1")->state(), v1::ANALYSIS_STATE_SUCCEEDED);
  EXPECT_EQ(*store_->Read("a1", Document::kReport), "the report");
}

TEST_F(SqliteStoreTest, ListIsNewestFirstInPages) {
  for (const char* id : {"a1", "a2", "a3", "a4", "a5"}) Add(id);
  ListQuery query;
  query.limit = 2;
  std::vector<std::vector<std::string>> pages;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const ListResult page, store_->List(query));
    EXPECT_EQ(page.total, 5u);
    pages.emplace_back();
    for (const auto& a : page.analyses) pages.back().push_back(a.id());
    if (!page.next.has_value()) break;
    query.after = page.next;
  }
  EXPECT_THAT(pages,
              ElementsAre(ElementsAre("a5", "a4"), ElementsAre("a3", "a2"), ElementsAre("a1")));
}

TEST_F(SqliteStoreTest, ListFiltersByCallerStateClassAndTime) {
  Add("a1");
  Add("a2", "uid:1001");
  Add("a3");
  Transition t = Message("classified");
  t.primary_class = v1::BOTTLENECK_CLASS_MEMORY_BOUND;
  ASSERT_THAT(store_->Append("a3", t, ToState(v1::ANALYSIS_STATE_RUNNING)), IsOk());
  ASSERT_THAT(store_->Append("a3", Message("done"), ToState(v1::ANALYSIS_STATE_SUCCEEDED)), IsOk());

  EXPECT_THAT(Ids({.caller = "uid:1000"}), ElementsAre("a3", "a1"));
  EXPECT_THAT(Ids({.states = {v1::ANALYSIS_STATE_SUCCEEDED}}), ElementsAre("a3"));
  EXPECT_THAT(Ids({.states = {v1::ANALYSIS_STATE_SUCCEEDED, v1::ANALYSIS_STATE_QUEUED}}),
              ElementsAre("a3", "a2", "a1"));
  // The class stays although later events do not name it.
  EXPECT_THAT(Ids({.primary_class = v1::BOTTLENECK_CLASS_MEMORY_BOUND}), ElementsAre("a3"));
  EXPECT_THAT(Ids({.primary_class = v1::BOTTLENECK_CLASS_HOST_BOUND}), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const v1::Analysis second, store_->Get("a2"));
  const int64_t since =
      second.submit_time().seconds() * 1'000'000'000 + second.submit_time().nanos();
  EXPECT_THAT(Ids({.since_ns = since}), ElementsAre("a3", "a2"));
}

TEST_F(SqliteStoreTest, UnfinishedAreThoseQueuedOrRunningOldestFirst) {
  for (const char* id : {"a1", "a2", "a3", "a4"}) Add(id);
  ASSERT_THAT(store_->Append("a1", Message(""), ToState(v1::ANALYSIS_STATE_RUNNING)), IsOk());
  ASSERT_THAT(store_->Append("a2", Message(""), ToState(v1::ANALYSIS_STATE_CANCELLED)), IsOk());
  ASSERT_THAT(store_->Append("a3", Message(""), ToState(v1::ANALYSIS_STATE_INPUT_REQUIRED)),
              IsOk());
  EXPECT_THAT(*store_->Unfinished(), ElementsAre("a1", "a4"));
}

TEST_F(SqliteStoreTest, WritersAndReadersAtOnceLoseNothing) {
  constexpr int kWriters = 4, kEvents = 40;
  for (int w = 0; w < 2; ++w) Add(absl::StrCat("a", w));
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < kWriters; ++w) {
      threads.emplace_back([&, w] {
        for (int i = 0; i < kEvents; ++i) {
          EXPECT_THAT(store_->Append(absl::StrCat("a", w % 2), Message("e"), NoChange), IsOk());
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto events = store_->EventsAfter("a0", 0, 1000);
        ASSERT_THAT(events, IsOk());
        for (size_t k = 0; k < events->size(); ++k) EXPECT_EQ((*events)[k].sequence(), k + 1);
      }
    });
  }
  for (const char* id : {"a0", "a1"}) {
    EXPECT_EQ(store_->Get(id)->last_sequence(), 1u + 2 * kEvents);
    EXPECT_EQ(store_->EventsAfter(id, 0, 1000)->size(), 1u + 2 * kEvents);
  }
}

TEST_F(SqliteStoreTest, OneKeySubmittedAtOnceMakesOneAnalysis) {
  std::atomic<int> made = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        v1::Analysis a = NewAnalysis(absl::StrCat("a", i));
        a.set_key("the key");
        auto created = store_->Create(a, "hash", "queued");
        ASSERT_THAT(created, IsOk());
        if (!created->existed) ++made;
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(store_->List({})->total, 1u);
}

TEST_F(SqliteStoreTest, TheFileIsForItsOwnerOnly) {
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabaseIsRefused) {
  store_.reset();
  std::filesystem::remove(path_ + "-wal");
  std::filesystem::remove(path_ + "-shm");
  std::ofstream(path_, std::ios::trunc) << std::string(8192, 'x');
  const auto opened = OpenSqliteStore(path_);
  EXPECT_THAT(opened.status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
  EXPECT_EQ(ErrorReason(opened.status()), "STORE_CORRUPT");
}

TEST_F(SqliteStoreTest, DamagedPagesAreReportedAndNotReadAsData) {
  for (int i = 0; i < 200; ++i) Add(absl::StrCat("a", 1000 + i));
  store_.reset();  // checkpoints the log into the file
  const auto size = std::filesystem::file_size(path_);
  ASSERT_GT(size, 65536u);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);  // the first page holds the schema and stays
    file << std::string(size - 4096, '\x5a');
  }
  auto opened = OpenSqliteStore(path_);
  absl::Status status = opened.status();
  if (status.ok()) status = (*opened)->Get("a1000").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("restore")));
}

TEST_F(SqliteStoreTest, ANewerSchemaIsRefused) {
  store_.reset();
  {
    ASSERT_OK_AND_ASSIGN(auto db, Connection::Open(path_));
    ASSERT_THAT(
        db->Execute(absl::StrCat("INSERT INTO schema_version VALUES(", SchemaVersion() + 1, ")")),
        IsOk());
  }
  const auto opened = OpenSqliteStore(path_);
  EXPECT_THAT(opened.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr(absl::StrCat("version ", SchemaVersion() + 1))));
  EXPECT_EQ(ErrorReason(opened.status()), "STORE_SCHEMA_NEWER");
}

TEST_F(SqliteStoreTest, AFullDiskIsNamedAndChangesNothing) {
  Add("a1");
  store_.reset();
  ASSERT_OK_AND_ASSIGN(auto db, Connection::Open(path_));
  ASSERT_THAT(db->Execute("PRAGMA max_page_count=1"), IsOk());  // clamps to the size it has
  auto transaction = Transaction::Begin(*db);
  ASSERT_THAT(transaction, IsOk());
  const absl::Status full = db->Execute(
      "INSERT INTO documents(analysis_id, name, record) VALUES('a1', 'report', zeroblob(1000000))");
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("free disk space")));
  EXPECT_EQ(ErrorReason(full), "STORE_FULL");
  transaction->reset();
  db.reset();
  Open();
  EXPECT_EQ(*store_->Read("a1", Document::kReport), std::nullopt);
  EXPECT_EQ(store_->Get("a1")->last_sequence(), 1u);
}

TEST_F(SqliteStoreTest, AFolderThatIsMissingIsNamed) {
  const auto opened = OpenSqliteStore(folder_ + "/no/such/store.db");
  EXPECT_THAT(opened.status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("folder must exist")));
}

TEST_F(SqliteStoreTest, AStoreThatCannotBeWrittenIsNamed) {
  ASSERT_OK_AND_ASSIGN(auto db, Connection::Open(path_));
  ASSERT_THAT(db->Execute("PRAGMA query_only=ON"), IsOk());
  const absl::Status status = db->Execute("DELETE FROM events");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("writable")));
  EXPECT_EQ(ErrorReason(status), "STORE_READ_ONLY");
}

}  // namespace
}  // namespace solward::store
