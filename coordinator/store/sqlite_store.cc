#include "coordinator/store/sqlite_store.h"

#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/status.h"
#include "coordinator/store/schema.h"
#include "coordinator/store/sqlite.h"
#include "google/protobuf/util/time_util.h"

namespace solward::store {
namespace {

using google::protobuf::util::TimeUtil;

template <typename Message>
absl::StatusOr<Message> Parse(const std::string& bytes, absl::string_view what) {
  Message message;
  if (!message.ParseFromString(bytes)) {
    return MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                     absl::StrCat(what,
                                  ": the stored record cannot be read; restore the store "
                                  "from a copy"));
  }
  return message;
}

absl::Status NotFound(const std::string& analysis_id) {
  return MakeError(absl::StatusCode::kNotFound, "ANALYSIS_NOT_FOUND",
                   absl::StrCat("analysis '", analysis_id,
                                "': not known; list the analyses to "
                                "see which ids exist"));
}

absl::StatusOr<v1::Analysis> ReadAnalysis(Connection& db, const std::string& id) {
  ASSIGN_OR_RETURN(auto select, db.Prepare("SELECT record FROM analyses WHERE id=?"));
  select->BindText(1, id);
  ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) return NotFound(id);
  return Parse<v1::Analysis>(select->Bytes(0), absl::StrCat("analysis ", id));
}

absl::StatusOr<v1::Analysis> ReadByKey(Connection& db, const std::string& caller,
                                       const std::string& key, const std::string& request_hash) {
  ASSIGN_OR_RETURN(auto select, db.Prepare("SELECT record, request_hash FROM analyses "
                                           "WHERE caller=? AND key=?"));
  select->BindText(1, caller).BindText(2, key);
  ASSIGN_OR_RETURN(const bool found, select->Step());
  if (!found) {
    return MakeError(absl::StatusCode::kNotFound, "KEY_UNKNOWN",
                     absl::StrCat("key '", key, "': no analysis has it"));
  }
  ASSIGN_OR_RETURN(auto analysis, Parse<v1::Analysis>(select->Bytes(0), "analysis"));
  if (select->Bytes(1) != request_hash) {
    return MakeError(absl::StatusCode::kAlreadyExists, "KEY_REUSED",
                     absl::StrCat("key '", key, "': already names analysis ", analysis.id(),
                                  " with another request; send the same request or a new key"));
  }
  return analysis;
}

absl::Status WriteEvent(Connection& db, const std::string& id, const v1::AnalysisEvent& event) {
  ASSIGN_OR_RETURN(auto insert, db.Prepare("INSERT INTO events(analysis_id, sequence, record) "
                                           "VALUES(?,?,?)"));
  const std::string record = event.SerializeAsString();
  return insert->BindText(1, id)
      .Bind(2, static_cast<int64_t>(event.sequence()))
      .BindBlob(3, record)
      .Run();
}

absl::Status WriteDocument(Connection& db, const std::string& id, Document document,
                           const std::string& bytes) {
  ASSIGN_OR_RETURN(auto upsert, db.Prepare("INSERT INTO documents(analysis_id, name, record) "
                                           "VALUES(?,?,?) ON CONFLICT(analysis_id, name) "
                                           "DO UPDATE SET record=excluded.record"));
  return upsert->BindText(1, id).BindText(2, DocumentName(document)).BindBlob(3, bytes).Run();
}

// Numbers the event and gives it the state it leads to.
void CompleteEvent(v1::Analysis& analysis, v1::AnalysisEvent& event) {
  analysis.set_last_sequence(analysis.last_sequence() + 1);
  event.set_sequence(analysis.last_sequence());
  *event.mutable_time() = TimeUtil::NanosecondsToTimestamp(absl::GetCurrentTimeNanos());
  event.set_stage(analysis.stage());
  event.set_state(analysis.state());
  if (HasEnded(analysis.state())) *analysis.mutable_end_time() = event.time();
}

// WHERE clause of a list, and its bindings in order.
struct Where {
  std::string sql = "1=1";
  std::vector<std::variant<int64_t, std::string>> values;

  void And(absl::string_view condition) { absl::StrAppend(&sql, " AND ", condition); }
  void Bind(Statement& statement) const {
    int index = 1;
    for (const auto& value : values) {
      if (const auto* number = std::get_if<int64_t>(&value))
        statement.Bind(index, *number);
      else
        statement.BindText(index, std::get<std::string>(value));
      ++index;
    }
  }
};

Where MatchesOf(const ListQuery& query) {
  Where where;
  if (query.caller.has_value()) {
    where.And("caller=?");
    where.values.emplace_back(*query.caller);
  }
  if (!query.states.empty()) {
    std::vector<std::string> marks(query.states.size(), "?");
    where.And(absl::StrCat("state IN (", absl::StrJoin(marks, ","), ")"));
    for (const auto state : query.states) where.values.emplace_back(int64_t{state});
  }
  if (query.primary_class.has_value()) {
    where.And("primary_class=?");
    where.values.emplace_back(int64_t{*query.primary_class});
  }
  if (query.since_ns.has_value()) {
    where.And("submit_time_ns>=?");
    where.values.emplace_back(*query.since_ns);
  }
  return where;
}

class SqliteStore : public Store {
 public:
  SqliteStore(std::unique_ptr<Connection> writer, std::unique_ptr<Connection> reader)
      : writer_(std::move(writer)), reader_(std::move(reader)) {}

  absl::StatusOr<Created> Create(const v1::Analysis& analysis, const std::string& request_hash,
                                 const std::string& message) override;
  absl::StatusOr<v1::Analysis> FindByKey(const std::string& caller, const std::string& key,
                                         const std::string& request_hash) override {
    absl::MutexLock lock(&read_mutex_);
    return ReadByKey(*reader_, caller, key, request_hash);
  }
  absl::StatusOr<Appended> Append(
      const std::string& analysis_id, Transition transition,
      const std::function<absl::Status(v1::Analysis&)>& update) override;
  absl::StatusOr<v1::Analysis> Get(const std::string& analysis_id) override {
    absl::MutexLock lock(&read_mutex_);
    return ReadAnalysis(*reader_, analysis_id);
  }
  absl::StatusOr<ListResult> List(const ListQuery& query) override;
  absl::StatusOr<std::vector<std::string>> Unfinished() override;
  absl::StatusOr<std::vector<v1::AnalysisEvent>> EventsAfter(const std::string& analysis_id,
                                                             uint64_t after_sequence,
                                                             uint32_t limit) override;
  absl::StatusOr<std::optional<std::string>> Read(const std::string& analysis_id,
                                                  Document document) override;

 private:
  // Readers never wait for a commit to reach the disk: they have their own connection.
  absl::Mutex write_mutex_;
  const std::unique_ptr<Connection> writer_ ABSL_PT_GUARDED_BY(write_mutex_);
  absl::Mutex read_mutex_;
  const std::unique_ptr<Connection> reader_ ABSL_PT_GUARDED_BY(read_mutex_);
};

absl::StatusOr<Created> SqliteStore::Create(const v1::Analysis& analysis,
                                            const std::string& request_hash,
                                            const std::string& message) {
  absl::MutexLock lock(&write_mutex_);
  ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(*writer_));
  absl::StatusOr<v1::Analysis> known =
      ReadByKey(*writer_, analysis.caller(), analysis.key(), request_hash);
  if (known.ok()) return Created{*std::move(known), true};
  if (!absl::IsNotFound(known.status())) return known.status();

  Created created{analysis, false};
  v1::AnalysisEvent event;
  event.set_message(message);
  CompleteEvent(created.analysis, event);
  *created.analysis.mutable_submit_time() = event.time();
  {
    ASSIGN_OR_RETURN(auto insert,
                     writer_->Prepare("INSERT INTO analyses(id, caller, key, request_hash, state, "
                                      "submit_time_ns, record) VALUES(?,?,?,?,?,?,?)"));
    const std::string record = created.analysis.SerializeAsString();
    RETURN_IF_ERROR(insert->BindText(1, analysis.id())
                        .BindText(2, analysis.caller())
                        .BindText(3, analysis.key())
                        .BindText(4, request_hash)
                        .Bind(5, analysis.state())
                        .Bind(6, TimeUtil::TimestampToNanoseconds(event.time()))
                        .BindBlob(7, record)
                        .Run());
  }
  RETURN_IF_ERROR(WriteEvent(*writer_, analysis.id(), event));
  RETURN_IF_ERROR(transaction->Commit());
  return created;
}

absl::StatusOr<Appended> SqliteStore::Append(
    const std::string& analysis_id, Transition transition,
    const std::function<absl::Status(v1::Analysis&)>& update) {
  absl::MutexLock lock(&write_mutex_);
  ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(*writer_));
  ASSIGN_OR_RETURN(v1::Analysis analysis, ReadAnalysis(*writer_, analysis_id));
  RETURN_IF_ERROR(update(analysis));
  CompleteEvent(analysis, transition.event);
  {
    ASSIGN_OR_RETURN(auto change, writer_->Prepare("UPDATE analyses SET state=?, record=?, "
                                                   "primary_class=CASE WHEN ?<0 THEN primary_class "
                                                   "ELSE ? END WHERE id=?"));
    const std::string record = analysis.SerializeAsString();
    const int64_t classified =
        transition.primary_class.has_value() ? *transition.primary_class : -1;
    RETURN_IF_ERROR(change->Bind(1, analysis.state())
                        .BindBlob(2, record)
                        .Bind(3, classified)
                        .Bind(4, classified)
                        .BindText(5, analysis_id)
                        .Run());
  }
  RETURN_IF_ERROR(WriteEvent(*writer_, analysis_id, transition.event));
  for (const auto& [document, bytes] : transition.documents) {
    RETURN_IF_ERROR(WriteDocument(*writer_, analysis_id, document, bytes));
  }
  RETURN_IF_ERROR(transaction->Commit());
  return Appended{std::move(analysis), std::move(transition.event)};
}

absl::StatusOr<ListResult> SqliteStore::List(const ListQuery& query) {
  absl::MutexLock lock(&read_mutex_);
  ListResult result;
  Where where = MatchesOf(query);
  {
    ASSIGN_OR_RETURN(auto count, reader_->Prepare(absl::StrCat(
                                     "SELECT count(*) FROM analyses WHERE ", where.sql)));
    where.Bind(*count);
    RETURN_IF_ERROR(count->Step().status());
    result.total = static_cast<uint64_t>(count->Int(0));
  }
  if (query.after.has_value()) {
    where.And("(submit_time_ns, id) < (?, ?)");
    where.values.emplace_back(query.after->submit_time_ns);
    where.values.emplace_back(query.after->id);
  }
  ASSIGN_OR_RETURN(auto select, reader_->Prepare(absl::StrCat(
                                    "SELECT record, submit_time_ns, id FROM analyses WHERE ",
                                    where.sql, " ORDER BY submit_time_ns DESC, id DESC LIMIT ?")));
  where.Bind(*select);
  // One more than asked for: whether there is a next page.
  select->Bind(static_cast<int>(where.values.size()) + 1, int64_t{query.limit} + 1);
  ListPosition last;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) break;
    if (result.analyses.size() == query.limit) {
      result.next = last;
      break;
    }
    ASSIGN_OR_RETURN(v1::Analysis analysis,
                     Parse<v1::Analysis>(select->Bytes(0), select->Bytes(2)));
    last = {select->Int(1), select->Bytes(2)};
    result.analyses.push_back(std::move(analysis));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> SqliteStore::Unfinished() {
  absl::MutexLock lock(&read_mutex_);
  ASSIGN_OR_RETURN(auto select, reader_->Prepare("SELECT id FROM analyses WHERE state IN (?,?) "
                                                 "ORDER BY submit_time_ns, id"));
  select->Bind(1, v1::ANALYSIS_STATE_QUEUED).Bind(2, v1::ANALYSIS_STATE_RUNNING);
  std::vector<std::string> ids;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return ids;
    ids.push_back(select->Bytes(0));
  }
}

absl::StatusOr<std::vector<v1::AnalysisEvent>> SqliteStore::EventsAfter(
    const std::string& analysis_id, uint64_t after_sequence, uint32_t limit) {
  std::vector<v1::AnalysisEvent> events;
  if (after_sequence > static_cast<uint64_t>(INT64_MAX)) return events;
  absl::MutexLock lock(&read_mutex_);
  ASSIGN_OR_RETURN(auto select,
                   reader_->Prepare("SELECT record FROM events WHERE analysis_id=? AND sequence>? "
                                    "ORDER BY sequence LIMIT ?"));
  select->BindText(1, analysis_id).Bind(2, static_cast<int64_t>(after_sequence)).Bind(3, limit);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return events;
    ASSIGN_OR_RETURN(v1::AnalysisEvent event,
                     Parse<v1::AnalysisEvent>(select->Bytes(0), "analysis event"));
    events.push_back(std::move(event));
  }
}

absl::StatusOr<std::optional<std::string>> SqliteStore::Read(const std::string& analysis_id,
                                                             Document document) {
  absl::MutexLock lock(&read_mutex_);
  ASSIGN_OR_RETURN(auto select,
                   reader_->Prepare("SELECT record FROM documents WHERE analysis_id=? AND name=?"));
  select->BindText(1, analysis_id).BindText(2, DocumentName(document));
  ASSIGN_OR_RETURN(const bool row, select->Step());
  if (!row) return std::optional<std::string>();
  return std::optional<std::string>(select->Bytes(0));
}

}  // namespace

const char* DocumentName(Document document) {
  switch (document) {
    case Document::kAnswers:
      return "answers";
    case Document::kUnderstanding:
      return "understanding";
    case Document::kPlan:
      return "plan";
    case Document::kEvidence:
      return "evidence";
    case Document::kSecondWaveEvidence:
      return "second_wave_evidence";
    case Document::kMeasurement:
      return "measurement";
    case Document::kClassification:
      return "classification";
    case Document::kReport:
      return "report";
    case Document::kReportMarkdownEnglish:
      return "report.en.md";
    case Document::kReportMarkdownFrench:
      return "report.fr.md";
    case Document::kReportJson:
      return "report.json";
  }
  return "unknown";
}

bool HasEnded(v1::AnalysisState state) {
  return state == v1::ANALYSIS_STATE_SUCCEEDED || state == v1::ANALYSIS_STATE_FAILED ||
         state == v1::ANALYSIS_STATE_CANCELLED;
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path) {
  ASSIGN_OR_RETURN(auto writer, Connection::Open(path));
  RETURN_IF_ERROR(MigrateSchema(*writer, path));
  ASSIGN_OR_RETURN(auto reader, Connection::Open(path));
  return std::make_unique<SqliteStore>(std::move(writer), std::move(reader));
}

}  // namespace solward::store
