#include "coordinator/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::store {
namespace {

absl::Status StoreError(int code, absl::string_view detail, const std::string& path) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return MakeError(absl::StatusCode::kResourceExhausted, "STORE_FULL",
                       absl::StrCat(path, ": no space left for the store (", detail,
                                    "); free disk space, nothing was changed"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_READ_ONLY",
                       absl::StrCat(path, ": the store cannot be written (", detail,
                                    "); make the file and its folder writable for this user"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                       absl::StrCat(path, ": not an intact store (", detail,
                                    "); move the file away or restore a copy of it"));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return MakeError(
          absl::StatusCode::kUnavailable, "STORE_BUSY",
          absl::StrCat(path, ": the store is locked by another process (", detail, "); try again"));
    case SQLITE_CANTOPEN:
      return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_CANNOT_OPEN",
                       absl::StrCat(path, ": the store cannot be opened (", detail,
                                    "); the folder must exist and be writable for this user"));
    default:
      return MakeError(absl::StatusCode::kInternal, "STORE_IO",
                       absl::StrCat(path, ": store error ", code, " (", detail, ")"));
  }
}

}  // namespace

Statement::~Statement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::Bind(int index, int64_t value) {
  if (int rc = sqlite3_bind_int64(statement_, index, value); rc != SQLITE_OK) bind_error_ = rc;
  return *this;
}

Statement& Statement::BindText(int index, absl::string_view value) {
  const int rc = sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_STATIC,
                                     SQLITE_UTF8);
  if (rc != SQLITE_OK) bind_error_ = rc;
  return *this;
}

Statement& Statement::BindBlob(int index, absl::string_view value) {
  const char* data = value.empty() ? "" : value.data();  // a null pointer would bind NULL
  const int rc = sqlite3_bind_blob64(statement_, index, data, value.size(), SQLITE_STATIC);
  if (rc != SQLITE_OK) bind_error_ = rc;
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != 0) return StoreError(bind_error_, sqlite3_errstr(bind_error_), path_);
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return StoreError(sqlite3_extended_errcode(db_), sqlite3_errmsg(db_), path_);
}

absl::Status Statement::Run() { return Step().status(); }

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Statement::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path) {
  // Requests and reports are the callers' own: nobody else may read the file.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    const bool denied = errno == EACCES || errno == EROFS;
    return StoreError(denied ? SQLITE_READONLY : SQLITE_CANTOPEN, std::strerror(errno), path);
  }
  close(fd);
  sqlite3* db = nullptr;
  const int rc =
      sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  auto connection = std::unique_ptr<Connection>(new Connection(db, path));
  if (rc != SQLITE_OK) {
    return StoreError(rc, db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(rc), path);
  }
  sqlite3_extended_result_codes(db, 1);
  sqlite3_busy_timeout(db, 5000);
  RETURN_IF_ERROR(
      connection->Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
                          "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;"));
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

absl::StatusOr<std::unique_ptr<Statement>> Connection::Prepare(const std::string& sql) {
  auto it = statements_.find(sql);
  if (it == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int rc = sqlite3_prepare_v3(db_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (rc != SQLITE_OK) return StoreError(rc, sqlite3_errmsg(db_), path_);
    it = statements_.emplace(sql, statement).first;
  }
  return std::make_unique<Statement>(db_, it->second, path_);
}

absl::Status Connection::Execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return StoreError(sqlite3_extended_errcode(db_), sqlite3_errmsg(db_), path_);
}

absl::StatusOr<std::unique_ptr<Transaction>> Transaction::Begin(Connection& connection) {
  RETURN_IF_ERROR(connection.Execute("BEGIN IMMEDIATE"));
  return std::unique_ptr<Transaction>(new Transaction(connection));
}

Transaction::~Transaction() {
  // SQLite has rolled back by itself after a full disk; then this says so and does nothing.
  if (open_) connection_.Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  RETURN_IF_ERROR(connection_.Execute("COMMIT"));
  open_ = false;
  return absl::OkStatus();
}

}  // namespace solward::store
