// Reads tables of an SQLite file of unknown origin: read-only, real tables
// only, columns by name, and with every error as a Status.
//
//   ASSIGN_OR_RETURN(SqliteCapture db, SqliteCapture::Open(path, label));
//   ASSIGN_OR_RETURN(SqliteRows rows, db.Select("NVTX_EVENTS", {"start", "end", "text"}));
//   while (true) {
//     ASSIGN_OR_RETURN(bool more, rows.Next());
//     if (!more) break;
//     if (auto start = rows.Integer(0)) ...
//   }
#ifndef SOLWARD_AGENTS_PROFILING_READERS_SQLITE_CAPTURE_H_
#define SOLWARD_AGENTS_PROFILING_READERS_SQLITE_CAPTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace solward::readers {

struct SqliteClose {
  void operator()(sqlite3* db) const;
};
struct SqliteFinalize {
  void operator()(sqlite3_stmt* statement) const;
};

// Rows of one table, in the order of their row ids. Lives no longer than the
// capture. Column numbers are those of the Select; a column that the table
// does not have is NULL in every row.
class SqliteRows {
 public:
  // False after the last row. DATA_LOSS when the file is corrupt here.
  absl::StatusOr<bool> Next();

  int64_t rowid() const;
  // Nothing when NULL or not an integer.
  std::optional<int64_t> Integer(int column) const;
  bool IsNull(int column) const;
  // Bytes as they stand, embedded NULs included; empty when NULL. Valid until
  // the next call of Next.
  absl::string_view Text(int column) const;

  // Starts over with another value of the single `?` parameter.
  absl::Status Rebind(int64_t value);

 private:
  friend class SqliteCapture;
  SqliteRows(sqlite3_stmt* statement, std::string where)
      : statement_(statement), where_(std::move(where)) {}

  std::unique_ptr<sqlite3_stmt, SqliteFinalize> statement_;
  std::string where_;
  uint64_t rows_ = 0;
};

// Not thread-safe.
class SqliteCapture {
 public:
  // `label` names the file in messages. INVALID_ARGUMENT when it is no SQLite
  // file, DATA_LOSS when it is shorter than its own header says.
  static absl::StatusOr<SqliteCapture> Open(const std::string& path, const std::string& label);

  // Real tables, not views and not virtual ones.
  const std::set<std::string>& tables() const { return tables_; }
  bool HasTable(const std::string& table) const { return tables_.count(table) > 0; }
  // Names of the table's columns; empty when there is no such table.
  absl::StatusOr<std::set<std::string>> Columns(const std::string& table);

  absl::StatusOr<SqliteRows> Select(const std::string& table,
                                    const std::vector<std::string>& columns);
  // SELECT column FROM table WHERE key = ?.
  absl::StatusOr<SqliteRows> SelectByKey(const std::string& table, const std::string& column,
                                         const std::string& key);

 private:
  SqliteCapture() = default;
  absl::StatusOr<SqliteRows> Prepare(const std::string& sql, const std::string& table);
  absl::Status ReadTables();

  std::unique_ptr<sqlite3, SqliteClose> db_;
  std::string label_;
  std::set<std::string> tables_;
};

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_SQLITE_CAPTURE_H_
