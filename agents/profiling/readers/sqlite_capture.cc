#include "agents/profiling/readers/sqlite_capture.h"

#include <sqlite3.h>

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::readers {
namespace {

constexpr size_t kHeaderBytes = 100;
constexpr int kMaxValueBytes = 64 << 20;

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

absl::Status FromSqlite(int code, const char* message, const std::string& where, uint64_t rows) {
  const std::string what = absl::StrCat(where, ": ", CleanUtf8(message));
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_MISMATCH",
                       absl::StrCat(what, "; expected an SQLite file"));
    case SQLITE_CORRUPT:
    case SQLITE_IOERR:
      return MakeError(
          absl::StatusCode::kDataLoss, "CAPTURE_CORRUPT",
          absl::StrCat(what, ", after ", rows, " good rows; copy or export the capture again"));
    case SQLITE_TOOBIG:
      return MakeError(
          absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
          absl::StrCat(what, ": expected values of at most ", kMaxValueBytes, " bytes"));
    case SQLITE_NOMEM:
      return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE", what);
    default:
      return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_CORRUPT", what);
  }
}

uint32_t BigEndian32(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// Compares the file's length with what its header says.
absl::Status CheckHeader(const std::string& path, const std::string& label) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, "CAPTURE_UNREADABLE",
                     absl::StrCat(label, ": cannot be opened"));
  }
  const auto size = static_cast<uint64_t>(file.tellg());
  unsigned char header[kHeaderBytes] = {};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(header), kHeaderBytes);
  const absl::string_view magic(reinterpret_cast<const char*>(header), 16);
  if (magic != absl::string_view("SQLite format 3\0", 16)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_MISMATCH",
                     absl::StrCat(label, ": expected an SQLite file, found one that begins with \"",
                                  CleanUtf8(magic.substr(0, std::min<uint64_t>(size, 16))), "\""));
  }
  if (size < kHeaderBytes) {
    return MakeError(absl::StatusCode::kDataLoss, "CAPTURE_TRUNCATED",
                     absl::StrCat(label,
                                  ": truncated: expected an SQLite header of 100 bytes, "
                                  "found ",
                                  size, " bytes"));
  }
  // The page count is right only when the two change counters agree.
  uint64_t page_size = uint64_t{header[16]} << 8 | header[17];
  if (page_size == 1) page_size = 65536;
  const uint64_t expected = page_size * BigEndian32(header + 28);
  if (BigEndian32(header + 24) == BigEndian32(header + 92) && size < expected) {
    return MakeError(
        absl::StatusCode::kDataLoss, "CAPTURE_TRUNCATED",
        absl::StrCat(label, ": truncated: expected ", expected, " bytes by its own header, found ",
                     size, "; copy or export the capture again"));
  }
  return absl::OkStatus();
}

// A path as an SQLite URI, so that nothing in it is taken for a parameter.
std::string ToUri(const std::string& path) {
  std::string uri = absl::StartsWith(path, "/") ? "file://" : "file:";
  for (unsigned char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      absl::StrAppend(&uri, "%", absl::Hex(c, absl::kZeroPad2));
    } else {
      uri.push_back(static_cast<char>(c));
    }
  }
  return uri + "?mode=ro&immutable=1";
}

// What a file can make SQLite do is kept to reading its own tables.
void Harden(sqlite3* db) {
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
}

}  // namespace

void SqliteClose::operator()(sqlite3* db) const { sqlite3_close_v2(db); }
void SqliteFinalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

absl::StatusOr<bool> SqliteRows::Next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    ++rows_;
    return true;
  }
  if (code == SQLITE_DONE) return false;
  return FromSqlite(code, sqlite3_errmsg(sqlite3_db_handle(statement_.get())), where_, rows_);
}

int64_t SqliteRows::rowid() const { return sqlite3_column_int64(statement_.get(), 0); }

std::optional<int64_t> SqliteRows::Integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column + 1) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column + 1);
}

bool SqliteRows::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column + 1) == SQLITE_NULL;
}

absl::string_view SqliteRows::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column + 1);
  if (bytes == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column + 1);
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

absl::Status SqliteRows::Rebind(int64_t value) {
  sqlite3_reset(statement_.get());
  const int code = sqlite3_bind_int64(statement_.get(), 1, value);
  if (code == SQLITE_OK) return absl::OkStatus();
  return FromSqlite(code, sqlite3_errstr(code), where_, rows_);
}

absl::StatusOr<SqliteCapture> SqliteCapture::Open(const std::string& path,
                                                  const std::string& label) {
  RETURN_IF_ERROR(CheckHeader(path, label));
  SqliteCapture capture;
  capture.label_ = label;
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(ToUri(path).c_str(), &db,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  capture.db_.reset(db);
  if (code != SQLITE_OK) return FromSqlite(code, sqlite3_errstr(code), label, 0);
  Harden(db);
  RETURN_IF_ERROR(capture.ReadTables());
  return capture;
}

absl::Status SqliteCapture::ReadTables() {
  ASSIGN_OR_RETURN(
      SqliteRows rows,
      Prepare("SELECT 0, name, sql FROM sqlite_master WHERE type = 'table'", "its list of tables"));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return absl::OkStatus();
    if (absl::StartsWithIgnoreCase(rows.Text(1), "CREATE VIRTUAL")) continue;
    tables_.emplace(rows.Text(0));
  }
}

absl::StatusOr<SqliteRows> SqliteCapture::Prepare(const std::string& sql,
                                                  const std::string& table) {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(db_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  const std::string where = absl::StrCat(label_, ": ", table);
  if (code != SQLITE_OK) return FromSqlite(code, sqlite3_errmsg(db_.get()), where, 0);
  return SqliteRows(statement, where);
}

absl::StatusOr<std::set<std::string>> SqliteCapture::Columns(const std::string& table) {
  std::set<std::string> columns;
  if (!HasTable(table)) return columns;
  ASSIGN_OR_RETURN(SqliteRows rows,
                   Prepare(absl::StrCat("PRAGMA table_info(", Quoted(table), ")"), table));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return columns;
    columns.emplace(rows.Text(0));  // cid, name, type, ...
  }
}

absl::StatusOr<SqliteRows> SqliteCapture::Select(const std::string& table,
                                                 const std::vector<std::string>& columns) {
  ASSIGN_OR_RETURN(const std::set<std::string> present, Columns(table));
  std::string sql = "SELECT _rowid_";
  for (const std::string& column : columns) {
    absl::StrAppend(&sql, ", ", present.count(column) > 0 ? Quoted(column) : "NULL");
  }
  absl::StrAppend(&sql, " FROM ", Quoted(table));
  return Prepare(sql, table);
}

absl::StatusOr<SqliteRows> SqliteCapture::SelectByKey(const std::string& table,
                                                      const std::string& column,
                                                      const std::string& key) {
  return Prepare(absl::StrCat("SELECT 0, ", Quoted(column), " FROM ", Quoted(table), " WHERE ",
                              Quoted(key), " = ?"),
                 table);
}

}  // namespace solward::readers
