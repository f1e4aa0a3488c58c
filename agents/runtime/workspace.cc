#include "agents/runtime/workspace.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agents/runtime/durable_file.h"
#include "common/id.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/text.h"

namespace solward::runtime {
namespace {

constexpr uint64_t kMaxManifestBytes = 64 << 10;
constexpr uint64_t kMaxInstanceBytes = 256;
constexpr absl::string_view kManifestSuffix = ".json";

// Opaque to others; the same bytes have the same id at every specialist, so
// that reports about one capture can be compared.
std::string IdOfSha256(absl::string_view sha256) {
  return absl::StrCat("art-", sha256.substr(0, 32));
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::StatusOr<std::string> ManifestText(const v1::ArtifactReference& artifact) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(artifact, &text, options).ok()) {
    return MakeError(absl::StatusCode::kInternal, "MANIFEST", "cannot write the manifest");
  }
  return text;
}

// Names in a folder; INTERNAL when it cannot be read.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return FileError("cannot list", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<FileDescriptor> Lock(const std::string& root) {
  const std::string path = absl::StrCat(root, "/lock");
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return FileError("cannot open", path, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    // For the message of the next one only; the lock itself is the kernel's.
    const std::string pid = absl::StrCat(getpid(), "\n");
    if (ftruncate(lock.get(), 0) == 0) RETURN_IF_ERROR(WriteAll(lock.get(), pid, path));
    return lock;
  }
  if (errno != EWOULDBLOCK) return FileError("cannot lock", path, errno);
  std::string holder = ReadSmallFile(path, 64).value_or("");
  absl::StripAsciiWhitespace(&holder);
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "WORKSPACE_IN_USE",
      absl::StrCat("workspace ", root, " is in use by process ", holder.empty() ? "?" : holder,
                   "; stop it or give this specialist a workspace of its own"));
}

absl::StatusOr<std::string> InstanceId(const std::string& root) {
  const std::string path = absl::StrCat(root, "/instance");
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxInstanceBytes);
  if (text.ok()) {
    absl::StripAsciiWhitespace(&*text);
    if (!text->empty()) return text;
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  const std::string made = NewId("instance");
  RETURN_IF_ERROR(WriteDurably(path, absl::StrCat(made, "\n")));
  return made;
}

absl::Status RemoveLeftovers(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    std::error_code error;
    std::filesystem::remove_all(absl::StrCat(folder, "/", name), error);
    if (error) return FileError("cannot remove", absl::StrCat(folder, "/", name), error.value());
  }
  if (!names.empty()) {
    Log(LogLevel::kInfo, "removed unfinished writes", {{"count", absl::StrCat(names.size())}});
  }
  return absl::OkStatus();
}

}  // namespace

// --- ArtifactWriter --------------------------------------------------------

struct ArtifactWriter::State {
  Workspace* workspace = nullptr;
  std::string temporary;
  FileDescriptor file;
  Sha256 sha256;
  uint64_t size = 0;  // bytes written, all reserved at the workspace
  absl::Status failed = absl::OkStatus();
};

ArtifactWriter::ArtifactWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArtifactWriter::ArtifactWriter(ArtifactWriter&&) noexcept = default;

ArtifactWriter::~ArtifactWriter() {
  if (state_ == nullptr) return;
  unlink(state_->temporary.c_str());
  state_->workspace->Release(state_->size);
}

absl::Status ArtifactWriter::Append(absl::string_view data) {
  if (state_ == nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "WRITER_DONE",
                     "the artifact was committed already");
  }
  State& s = *state_;
  if (!s.failed.ok()) return s.failed;
  const uint64_t cap = s.workspace->limits_.max_artifact_bytes;
  if (data.size() > cap - s.size) {
    s.failed = MakeError(absl::StatusCode::kResourceExhausted, "ARTIFACT_TOO_LARGE",
                         absl::StrCat("the artifact is larger than max_artifact_bytes = ", cap,
                                      "; record a shorter region or raise the limit"));
    return s.failed;
  }
  if (s.failed = s.workspace->Reserve(data.size()); !s.failed.ok()) return s.failed;
  s.size += data.size();
  s.sha256.Update(data);
  s.failed = WriteAll(s.file.get(), data, "the artifact");
  return s.failed;
}

absl::StatusOr<v1::ArtifactReference> ArtifactWriter::Commit(absl::string_view label,
                                                             absl::string_view media_type,
                                                             v1::CaptureKind kind,
                                                             absl::string_view expected_sha256) {
  RETURN_IF_ERROR(Append(""));
  State& s = *state_;
  s.failed = MakeError(absl::StatusCode::kFailedPrecondition, "WRITER_DONE",
                       "Commit was called already and failed");
  v1::ArtifactReference artifact;
  artifact.set_sha256(s.sha256.HexDigest());
  if (!expected_sha256.empty() && expected_sha256 != artifact.sha256()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "SHA256_MISMATCH",
                     absl::StrCat(label, ": expected SHA-256 ", expected_sha256,
                                  ", the bytes have ", artifact.sha256(), "; send the file again"));
  }
  artifact.set_id(IdOfSha256(artifact.sha256()));
  artifact.set_media_type(CleanUtf8(media_type));
  artifact.set_size(s.size);
  artifact.set_label(Truncate(CleanUtf8(label), kMaxLabelBytes));
  artifact.set_kind(kind);
  artifact.set_specialist_instance(s.workspace->instance_id_);
  if (fsync(s.file.get()) != 0) return FileError("cannot sync", "the artifact", errno);
  ASSIGN_OR_RETURN(artifact, s.workspace->Publish(s.temporary, std::move(artifact)));
  state_.reset();
  return artifact;
}

// --- Workspace -------------------------------------------------------------

Workspace::Workspace(std::string root, int lock_fd, std::string instance_id,
                     const WorkspaceLimits& limits)
    : root_(std::move(root)),
      lock_fd_(lock_fd),
      instance_id_(std::move(instance_id)),
      limits_(limits) {}

Workspace::~Workspace() { close(lock_fd_); }

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Open(const std::string& root,
                                                           const WorkspaceLimits& limits) {
  std::string folder = root;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  RETURN_IF_ERROR(MakeFolders(folder));
  // Captures may show what a workload computes: nobody else's to read.
  if (chmod(folder.c_str(), 0700) != 0) return FileError("cannot protect", folder, errno);
  ASSIGN_OR_RETURN(FileDescriptor lock, Lock(folder));
  ASSIGN_OR_RETURN(std::string instance_id, InstanceId(folder));
  for (const char* part : {"/tmp", "/artifacts"}) RETURN_IF_ERROR(MakeFolders(folder + part));
  RETURN_IF_ERROR(RemoveLeftovers(folder + "/tmp"));
  std::unique_ptr<Workspace> workspace(
      new Workspace(std::move(folder), lock.Release(), std::move(instance_id), limits));
  RETURN_IF_ERROR(workspace->Load());
  return workspace;
}

absl::Status Workspace::Load() {
  absl::MutexLock lock(&mutex_);
  const std::string folder = absl::StrCat(root_, "/artifacts");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<std::string> drop;
  for (const std::string& name : names) {
    absl::string_view sha256 = name;
    if (!absl::ConsumeSuffix(&sha256, kManifestSuffix)) {
      // Bytes whose manifest was never written.
      if (!std::binary_search(names.begin(), names.end(), absl::StrCat(name, kManifestSuffix))) {
        drop.push_back(name);
      }
      continue;
    }
    v1::ArtifactReference artifact;
    const auto text = ReadSmallFile(absl::StrCat(folder, "/", name), kMaxManifestBytes);
    struct stat info {};
    const bool good = text.ok() && IsSha256(sha256) &&
                      google::protobuf::util::JsonStringToMessage(*text, &artifact).ok() &&
                      artifact.sha256() == sha256 && artifact.id() == IdOfSha256(sha256) &&
                      stat(BytesPath(sha256).c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
                      static_cast<uint64_t>(info.st_size) == artifact.size();
    if (!good) {
      drop.push_back(name);
      drop.emplace_back(sha256);
      continue;
    }
    artifact.set_specialist_instance(instance_id_);
    total_bytes_ += artifact.size();
    artifacts_[artifact.id()] = std::move(artifact);
  }
  for (const std::string& name : drop) {
    Log(LogLevel::kWarning, "removed a damaged or unfinished artifact", {{"file", name}});
    std::error_code error;
    std::filesystem::remove_all(absl::StrCat(folder, "/", name), error);
  }
  return absl::OkStatus();
}

absl::StatusOr<ArtifactWriter> Workspace::Create() {
  auto state = std::make_unique<ArtifactWriter::State>();
  const std::string path = absl::StrCat(root_, "/tmp/", NewId("write"));
  state->file = FileDescriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!state->file.valid()) return FileError("cannot create", "an artifact", errno);
  state->workspace = this;
  state->temporary = path;
  return ArtifactWriter(std::move(state));
}

absl::Status Workspace::Reserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  // Over the limit already when it was lowered between two starts.
  if (total_bytes_ > limits_.max_total_bytes || bytes > limits_.max_total_bytes - total_bytes_) {
    return MakeError(absl::StatusCode::kResourceExhausted, "WORKSPACE_FULL",
                     absl::StrCat("the workspace holds ", total_bytes_, " bytes of at most ",
                                  "max_total_bytes = ", limits_.max_total_bytes, " and ", bytes,
                                  " more are wanted; raise the limit or remove artifacts"));
  }
  total_bytes_ += bytes;
  return absl::OkStatus();
}

void Workspace::Release(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  total_bytes_ -= bytes;
}

absl::StatusOr<v1::ArtifactReference> Workspace::Publish(const std::string& temporary,
                                                         v1::ArtifactReference artifact) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = artifacts_.find(artifact.id()); found != artifacts_.end()) {
    unlink(temporary.c_str());
    total_bytes_ -= artifact.size();
    return found->second;
  }
  const std::string path = BytesPath(artifact.sha256());
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return FileError("cannot rename", "the artifact", errno);
  }
  // The manifest last: without it the bytes are a leftover.
  absl::StatusOr<std::string> manifest = ManifestText(artifact);
  absl::Status written = manifest.status();
  if (written.ok()) written = WriteDurably(absl::StrCat(path, kManifestSuffix), *manifest);
  if (!written.ok()) {
    unlink(path.c_str());
    // The message names a path, which stays on this machine.
    Log(LogLevel::kError, "no manifest", {{"error", std::string(written.message())}});
    return MakeError(written.code(), ErrorReason(written),
                     "cannot write the artifact's manifest; the specialist's log says why");
  }
  artifacts_[artifact.id()] = artifact;
  return artifact;
}

absl::StatusOr<v1::ArtifactReference> Workspace::Find(absl::string_view artifact_id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = artifacts_.find(artifact_id);
  if (found == artifacts_.end()) {
    return MakeError(
        absl::StatusCode::kNotFound, "NO_SUCH_ARTIFACT",
        absl::StrCat("artifact '", Truncate(CleanUtf8(artifact_id), 80),
                     "' is not in the workspace of ", instance_id_, "; put the capture again"));
  }
  return found->second;
}

absl::StatusOr<v1::ArtifactReference> Workspace::FindBySha256(absl::string_view sha256) const {
  if (!IsSha256(sha256)) {
    return MakeError(absl::StatusCode::kNotFound, "NO_SUCH_ARTIFACT",
                     "expected a SHA-256 of 64 lower-case hex digits");
  }
  return Find(IdOfSha256(sha256));
}

absl::StatusOr<std::string> Workspace::PathOf(absl::string_view artifact_id) const {
  ASSIGN_OR_RETURN(const v1::ArtifactReference artifact, Find(artifact_id));
  return BytesPath(artifact.sha256());
}

absl::Status Workspace::SetKind(absl::string_view artifact_id, v1::CaptureKind kind) {
  absl::MutexLock lock(&mutex_);
  const auto found = artifacts_.find(artifact_id);
  if (found == artifacts_.end()) {
    return MakeError(absl::StatusCode::kNotFound, "NO_SUCH_ARTIFACT",
                     absl::StrCat("artifact '", artifact_id, "' is not in the workspace"));
  }
  if (found->second.kind() == kind) return absl::OkStatus();
  v1::ArtifactReference changed = found->second;
  changed.set_kind(kind);
  ASSIGN_OR_RETURN(const std::string manifest, ManifestText(changed));
  RETURN_IF_ERROR(
      WriteDurably(absl::StrCat(BytesPath(changed.sha256()), kManifestSuffix), manifest));
  found->second = std::move(changed);
  return absl::OkStatus();
}

std::vector<v1::ArtifactReference> Workspace::List() const {
  std::vector<v1::ArtifactReference> all;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, artifact] : artifacts_) all.push_back(artifact);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
  return all;
}

absl::StatusOr<std::string> Workspace::PrivateFolder(absl::string_view name) {
  std::string path = absl::StrCat(root_, "/", name);
  RETURN_IF_ERROR(MakeFolders(path));
  return path;
}

std::string Workspace::BytesPath(absl::string_view sha256) const {
  return absl::StrCat(root_, "/artifacts/", sha256);
}

}  // namespace solward::runtime
