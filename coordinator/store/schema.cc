#include "coordinator/store/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::store {
namespace {

// Step i leads from version i to i+1. Never change one that was released: add one.
constexpr const char* kSteps[] = {
    // 1: analyses, events, documents.
    R"sql(
CREATE TABLE analyses(
  id             TEXT    NOT NULL PRIMARY KEY,
  caller         TEXT    NOT NULL,
  key            TEXT    NOT NULL,
  request_hash   TEXT    NOT NULL,
  state          INTEGER NOT NULL,           -- v1.AnalysisState
  primary_class  INTEGER NOT NULL DEFAULT 0, -- v1.BottleneckClass; 0: not classified
  submit_time_ns INTEGER NOT NULL,
  record         BLOB    NOT NULL,           -- v1.Analysis
  UNIQUE(caller, key)
);
CREATE INDEX analyses_by_time ON analyses(submit_time_ns DESC, id DESC);
CREATE INDEX analyses_by_caller ON analyses(caller, submit_time_ns DESC, id DESC);
CREATE INDEX analyses_by_state ON analyses(state);
CREATE TABLE events(
  analysis_id TEXT    NOT NULL REFERENCES analyses(id),
  sequence    INTEGER NOT NULL,
  record      BLOB    NOT NULL,              -- v1.AnalysisEvent
  PRIMARY KEY(analysis_id, sequence)
) WITHOUT ROWID;
CREATE TABLE documents(
  analysis_id TEXT NOT NULL REFERENCES analyses(id),
  name        TEXT NOT NULL,
  record      BLOB NOT NULL,
  PRIMARY KEY(analysis_id, name)
);
)sql",
};

absl::StatusOr<int64_t> ReadVersion(Connection& connection) {
  RETURN_IF_ERROR(
      connection.Execute("CREATE TABLE IF NOT EXISTS schema_version(version INTEGER NOT NULL)"));
  ASSIGN_OR_RETURN(auto statement, connection.Prepare("SELECT max(version) FROM schema_version"));
  ASSIGN_OR_RETURN(const bool row, statement->Step());
  return row ? statement->Int(0) : 0;
}

}  // namespace

int SchemaVersion() { return static_cast<int>(std::size(kSteps)); }

absl::Status MigrateSchema(Connection& connection, const std::string& path) {
  ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(connection));
  ASSIGN_OR_RETURN(const int64_t found, ReadVersion(connection));
  if (found > SchemaVersion()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_SCHEMA_NEWER",
                     absl::StrCat(path, ": the store has schema version ", found,
                                  ", this program knows versions up to ", SchemaVersion(),
                                  "; use the newer program or another state folder"));
  }
  for (int64_t step = found; step < SchemaVersion(); ++step) {
    RETURN_IF_ERROR(connection.Execute(kSteps[step]));
    RETURN_IF_ERROR(connection.Execute(
        absl::StrCat("INSERT INTO schema_version(version) VALUES(", step + 1, ")")));
  }
  return transaction->Commit();
}

}  // namespace solward::store
