// Store in one SQLite file: the embedded default.
#ifndef SOLWARD_COORDINATOR_STORE_SQLITE_STORE_H_
#define SOLWARD_COORDINATOR_STORE_SQLITE_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/store/store.h"

namespace solward::store {

// Opens or makes the file (mode 0600) and brings its schema up to date. Write-
// ahead log, every commit on disk before it is acknowledged. One process at a
// time may run analyses from it (the coordinator locks its state folder).
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

}  // namespace solward::store

#endif  // SOLWARD_COORDINATOR_STORE_SQLITE_STORE_H_
