// Schema of the SQLite store, as a list of steps from one version to the next.
#ifndef SOLWARD_COORDINATOR_STORE_SCHEMA_H_
#define SOLWARD_COORDINATOR_STORE_SCHEMA_H_

#include "absl/status/status.h"
#include "coordinator/store/sqlite.h"

namespace solward::store {

// Newest version this program knows: the number of steps.
int SchemaVersion();

// Runs the missing steps in one transaction. FAILED_PRECONDITION
// (STORE_SCHEMA_NEWER) when a newer program wrote the file.
absl::Status MigrateSchema(Connection& connection, const std::string& path);

}  // namespace solward::store

#endif  // SOLWARD_COORDINATOR_STORE_SCHEMA_H_
