// A specialist's own folder of artifacts. Files are content-addressed, written
// atomically, and known outside by id only.
//
//   ASSIGN_OR_RETURN(auto workspace, Workspace::Open("/var/lib/solward/profiling", {}));
//   ASSIGN_OR_RETURN(ArtifactWriter writer, workspace->Create());
//   RETURN_IF_ERROR(writer.Append(bytes));
//   ASSIGN_OR_RETURN(v1::ArtifactReference artifact,
//                    writer.Commit("step.json", "application/json", kind));
//
// In the folder: `instance` (the instance id), `lock`, `artifacts/<sha256>` with
// `artifacts/<sha256>.json` (the reference) beside it, `tmp/` (unfinished
// writes) and what the runtime keeps besides (PrivateFolder).
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
  // All artifacts together, unfinished ones included.
  uint64_t max_total_bytes = 64ull << 30;
};

// Longest label kept, bytes.
inline constexpr size_t kMaxLabelBytes = 255;

class Workspace;

// Receives an artifact's bytes; nothing is visible before Commit. Dropping it
// removes what was written. Must not outlive its workspace. Not thread-safe.
class ArtifactWriter {
 public:
  ArtifactWriter(ArtifactWriter&&) noexcept;
  ArtifactWriter& operator=(ArtifactWriter&&) = delete;
  ~ArtifactWriter();

  // RESOURCE_EXHAUSTED beyond a limit (named) or on a full disk, INTERNAL on
  // another write error. After an error nothing can be committed.
  absl::Status Append(absl::string_view data);
  // fsync, rename, manifest. INVALID_ARGUMENT when `expected_sha256` is given
  // and differs. Bytes the workspace has already give the artifact there is.
  // Call once.
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
  // of unfinished writes and artifacts whose bytes are damaged (logged). The
  // instance id is made once and kept in it. FAILED_PRECONDITION (reason
  // WORKSPACE_IN_USE) when a process has it open, this one included.
  static absl::StatusOr<std::unique_ptr<Workspace>> Open(const std::string& root,
                                                         const WorkspaceLimits& limits);

  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const std::string& instance_id() const { return instance_id_; }
  const WorkspaceLimits& limits() const { return limits_; }

  absl::StatusOr<ArtifactWriter> Create();
  // NOT_FOUND names the id.
  absl::StatusOr<v1::ArtifactReference> Find(absl::string_view artifact_id) const;
  absl::StatusOr<v1::ArtifactReference> FindBySha256(absl::string_view sha256) const;
  // Path of the bytes, for this process's readers only; never leaves it.
  absl::StatusOr<std::string> PathOf(absl::string_view artifact_id) const;
  // Records what a reader found out about the file.
  absl::Status SetKind(absl::string_view artifact_id, v1::CaptureKind kind);
  // In order of id.
  std::vector<v1::ArtifactReference> List() const;

  // Makes sure of a folder (mode 0700) of this name for the runtime's own
  // records and gives its path.
  absl::StatusOr<std::string> PrivateFolder(absl::string_view name);

 private:
  friend class ArtifactWriter;
  Workspace(std::string root, int lock_fd, std::string instance_id, const WorkspaceLimits& limits);

  // Reads the manifests below artifacts/.
  absl::Status Load();
  absl::Status Reserve(uint64_t bytes);
  void Release(uint64_t bytes);
  // Files `artifact`, whose bytes lie in `temporary`; takes over their reservation.
  absl::StatusOr<v1::ArtifactReference> Publish(const std::string& temporary,
                                                v1::ArtifactReference artifact);
  std::string BytesPath(absl::string_view sha256) const;

  const std::string root_;
  const int lock_fd_;
  const std::string instance_id_;
  const WorkspaceLimits limits_;
  mutable absl::Mutex mutex_;
  // By artifact id, which follows from the SHA-256.
  absl::flat_hash_map<std::string, v1::ArtifactReference> artifacts_ ABSL_GUARDED_BY(mutex_);
  // Artifacts and the reservations of unfinished writes.
  uint64_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_WORKSPACE_H_
