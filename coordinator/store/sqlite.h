// Thin RAII over SQLite's C interface; errors become a Status that says what to do.
#ifndef SOLWARD_COORDINATOR_STORE_SQLITE_H_
#define SOLWARD_COORDINATOR_STORE_SQLITE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace solward::store {

// A prepared statement in use: reset when it goes out of scope. Bindings count
// from 1, columns from 0.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement, const std::string& path)
      : db_(db), statement_(statement), path_(path) {}
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(int index, int64_t value);
  // The bytes must live until the statement is reset.
  Statement& BindText(int index, absl::string_view value);
  Statement& BindBlob(int index, absl::string_view value);

  // True: a row is there. False: done.
  absl::StatusOr<bool> Step();
  // For a statement that gives no rows.
  absl::Status Run();

  int64_t Int(int column) const;
  std::string Bytes(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
  const std::string& path_;
  int bind_error_ = 0;
};

// One connection. Not thread-safe.
class Connection {
 public:
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Statements are prepared once per text and reused. Only one use of the same
  // text at a time.
  absl::StatusOr<std::unique_ptr<Statement>> Prepare(const std::string& sql);
  // Runs a script without results.
  absl::Status Execute(const std::string& sql);

 private:
  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  sqlite3* db_;
  const std::string path_;
  std::map<std::string, sqlite3_stmt*> statements_;
};

// BEGIN IMMEDIATE now; ROLLBACK unless committed.
class Transaction {
 public:
  static absl::StatusOr<std::unique_ptr<Transaction>> Begin(Connection& connection);
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(Connection& connection) : connection_(connection) {}
  Connection& connection_;
  bool open_ = true;
};

}  // namespace solward::store

#endif  // SOLWARD_COORDINATOR_STORE_SQLITE_H_
