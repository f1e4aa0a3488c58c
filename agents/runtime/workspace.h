// A specialist's own folder of artifacts. Files are content-addressed, written
// atomically, and known outside by id only.
#ifndef SOLWARD_AGENTS_RUNTIME_WORKSPACE_H_
#define SOLWARD_AGENTS_RUNTIME_WORKSPACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "solward/v1/delegation.pb.h"

namespace solward::runtime {

struct WorkspaceLimits {
  uint64_t max_artifact_bytes = 16ull << 30;
  uint64_t max_total_bytes = 64ull << 30;
};

class Workspace;

// Receives an artifact's bytes; nothing is visible before Commit. Dropping it
// removes what was written. Not thread-safe.
class ArtifactWriter {
 public:
  ArtifactWriter(ArtifactWriter&&) noexcept;
  ArtifactWriter& operator=(ArtifactWriter&&) = delete;
  ~ArtifactWriter();

  // RESOURCE_EXHAUSTED beyond a limit (named), INTERNAL on a write error.
  absl::Status Append(absl::string_view data);
  // fsync, rename, manifest. INVALID_ARGUMENT when `expected_sha256` is given
  // and differs.
  absl::StatusOr<v1::ArtifactReference> Commit(absl::string_view label,
                                               absl::string_view media_type, v1::CaptureKind kind,
                                               absl::string_view expected_sha256 = "");

 private:
  friend class Workspace;
  struct State;
  explicit ArtifactWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Thread-safe.
class Workspace {
 public:
  // Opens or makes the folder (mode 0700), reads manifests, removes leftovers
  // of unfinished writes. The instance id is made once and kept in it.
  static absl::StatusOr<std::unique_ptr<Workspace>> Open(const std::string& root,
                                                         const WorkspaceLimits& limits);

  const std::string& instance_id() const { return instance_id_; }

  absl::StatusOr<ArtifactWriter> Create();
  // NOT_FOUND names the id.
  absl::StatusOr<v1::ArtifactReference> Find(absl::string_view artifact_id) const;
  absl::StatusOr<v1::ArtifactReference> FindBySha256(absl::string_view sha256) const;
  // Path of the bytes, for this process's readers only; never leaves it.
  absl::StatusOr<std::string> PathOf(absl::string_view artifact_id) const;
  // Records what a reader found out about the file.
  absl::Status SetKind(absl::string_view artifact_id, v1::CaptureKind kind);
  std::vector<v1::ArtifactReference> List() const;

 private:
  friend class ArtifactWriter;
  Workspace(std::string root, std::string instance_id, const WorkspaceLimits& limits);

  const std::string root_;
  const std::string instance_id_;
  const WorkspaceLimits limits_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, v1::ArtifactReference> artifacts_ ABSL_GUARDED_BY(mutex_);
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_WORKSPACE_H_
