#include "agents/runtime/artifact_transfer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/runtime/durable_file.h"
#include "agents/runtime/request_checks.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"

namespace solward::runtime {
namespace {

absl::Status CheckRange(const v1::ArtifactReference& artifact,
                        const v1::ReadArtifactRequest& request) {
  if (request.offset() > artifact.size() || request.length() > artifact.size() - request.offset()) {
    return MakeError(
        absl::StatusCode::kOutOfRange, "BEYOND_ARTIFACT",
        absl::StrCat("artifact ", artifact.id(), " has ", artifact.size(), " bytes; offset ",
                     request.offset(), " with length ", request.length(), " is not inside"));
  }
  return absl::OkStatus();
}

// One message at a time, so one thread at a time: no lock is needed.
class ArtifactRead final : public grpc::ServerWriteReactor<v1::ReadArtifactResponse> {
 public:
  ArtifactRead(const Workspace& workspace, const v1::ReadArtifactRequest& request) {
    if (absl::Status opened = Open(workspace, request); !opened.ok()) {
      Finish(ToGrpcStatus(opened));
      return;
    }
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone"));
      return;
    }
    response_.clear_artifact();
    WriteNext();
  }

  void OnDone() override { delete this; }

 private:
  absl::Status Open(const Workspace& workspace, const v1::ReadArtifactRequest& request) {
    ASSIGN_OR_RETURN(*response_.mutable_artifact(), workspace.Find(request.artifact_id()));
    RETURN_IF_ERROR(CheckRange(response_.artifact(), request));
    ASSIGN_OR_RETURN(const std::string path, workspace.PathOf(request.artifact_id()));
    offset_ = request.offset();
    left_ = request.length() > 0 ? request.length() : response_.artifact().size() - offset_;
    file_ = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.valid()) return FileError("cannot open", "the artifact", errno);
    return absl::OkStatus();
  }

  absl::Status FillChunk() {
    std::string& chunk = *response_.mutable_data();
    chunk.resize(static_cast<size_t>(std::min<uint64_t>(left_, kMaxChunkBytes)));
    size_t have = 0;
    while (have < chunk.size()) {
      const ssize_t got = pread(file_.get(), chunk.data() + have, chunk.size() - have,
                                static_cast<off_t>(offset_ + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("cannot read", "the artifact", errno);
      if (got == 0) {
        return MakeError(absl::StatusCode::kDataLoss, "ARTIFACT_DAMAGED",
                         "the artifact is shorter than its record says");
      }
      have += static_cast<size_t>(got);
    }
    offset_ += have;
    left_ -= have;
    return absl::OkStatus();
  }

  void WriteNext() {
    // An empty range still gets its first message, with the reference.
    if (left_ == 0 && !response_.has_artifact()) {
      Finish(grpc::Status::OK);
      return;
    }
    if (absl::Status filled = FillChunk(); !filled.ok()) {
      Finish(ToGrpcStatus(filled));
      return;
    }
    StartWrite(&response_);
  }

  FileDescriptor file_;
  uint64_t offset_ = 0;
  uint64_t left_ = 0;
  v1::ReadArtifactResponse response_;
};

// The client's bytes are hashed also when the workspace has them already: who
// only knows a digest learns nothing.
class CaptureUpload final : public grpc::ServerReadReactor<v1::PutCaptureRequest> {
 public:
  CaptureUpload(const Specialist& specialist, Workspace& workspace, std::atomic<int>& uploads,
                int max_uploads, v1::PutCaptureResponse* response)
      : specialist_(specialist), workspace_(workspace), uploads_(uploads), response_(response) {
    if (++uploads_ > max_uploads) {
      End(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_UPLOADS",
                    absl::StrCat(max_uploads,
                                 " captures are being put, which is all this "
                                 "specialist takes at a time; try again later")));
      return;
    }
    StartRead(&part_);
  }

  void OnReadDone(bool ok) override {
    if (ended_) return;
    if (!ok) {
      End(Complete());
      return;
    }
    if (absl::Status taken = Take(); !taken.ok()) {
      End(taken);
      return;
    }
    StartRead(&part_);
  }

  void OnDone() override {
    --uploads_;
    delete this;
  }

 private:
  absl::Status Take() {
    if (!header_.has_value()) return TakeHeader();
    if (part_.has_header()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "UNEXPECTED_HEADER",
                       "a second header; expected data after the first message");
    }
    const std::string& data = part_.data();
    if (data.size() > kMaxChunkBytes) {
      return MakeError(absl::StatusCode::kInvalidArgument, "CHUNK_TOO_LARGE",
                       absl::StrCat("a chunk of ", data.size(), " bytes; at most ", kMaxChunkBytes,
                                    " are taken"));
    }
    if (data.size() > header_->size() - received_) {
      return MakeError(
          absl::StatusCode::kInvalidArgument, "SIZE_MISMATCH",
          absl::StrCat(header_->label(), ": more bytes than the header's ", header_->size()));
    }
    received_ += data.size();
    sha256_.Update(data);
    return writer_.has_value() ? writer_->Append(data) : absl::OkStatus();
  }

  absl::Status TakeHeader() {
    if (!part_.has_header()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "HEADER_MISSING",
                       "expected a header in the first message, found data");
    }
    RETURN_IF_ERROR(CheckCaptureHeader(part_.header(), workspace_.limits().max_artifact_bytes));
    header_ = part_.header();
    absl::StatusOr<v1::ArtifactReference> known = workspace_.FindBySha256(header_->sha256());
    if (known.ok()) {
      known_ = *std::move(known);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(ArtifactWriter writer, workspace_.Create());
    writer_.emplace(std::move(writer));
    return absl::OkStatus();
  }

  absl::Status Complete() {
    if (!header_.has_value()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "HEADER_MISSING",
                       "the stream ended before its header");
    }
    if (received_ != header_->size()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "SIZE_MISMATCH",
                       absl::StrCat(header_->label(), ": ", received_,
                                    " bytes came, the header "
                                    "says ",
                                    header_->size(), "; send the file again"));
    }
    v1::ArtifactReference artifact;
    if (writer_.has_value()) {
      ASSIGN_OR_RETURN(artifact, writer_->Commit(header_->label(), "application/octet-stream",
                                                 v1::CAPTURE_KIND_UNSPECIFIED, header_->sha256()));
      RETURN_IF_ERROR(FindKind(artifact));
    } else {
      if (const std::string digest = sha256_.HexDigest(); digest != header_->sha256()) {
        return MakeError(absl::StatusCode::kInvalidArgument, "SHA256_MISMATCH",
                         absl::StrCat(header_->label(), ": expected SHA-256 ", header_->sha256(),
                                      ", the bytes have ", digest, "; send the file again"));
      }
      artifact = known_;
      response_->set_existed(true);
    }
    // Each client sees its own name for the bytes.
    artifact.set_label(header_->label());
    *response_->mutable_artifact() = std::move(artifact);
    return absl::OkStatus();
  }

  absl::Status FindKind(v1::ArtifactReference& artifact) {
    ASSIGN_OR_RETURN(const std::string path, workspace_.PathOf(artifact.id()));
    artifact.set_kind(specialist_.KindOf(path));
    return workspace_.SetKind(artifact.id(), artifact.kind());
  }

  void End(const absl::Status& status) {
    ended_ = true;
    writer_.reset();
    Finish(ToGrpcStatus(status));
  }

  const Specialist& specialist_;
  Workspace& workspace_;
  std::atomic<int>& uploads_;
  v1::PutCaptureResponse* const response_;
  v1::PutCaptureRequest part_;
  std::optional<v1::PutCaptureHeader> header_;
  std::optional<ArtifactWriter> writer_;
  v1::ArtifactReference known_;
  Sha256 sha256_;
  uint64_t received_ = 0;
  bool ended_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadArtifactResponse>* StartArtifactRead(
    const Workspace& workspace, const v1::ReadArtifactRequest& request) {
  return new ArtifactRead(workspace, request);
}

grpc::ServerReadReactor<v1::PutCaptureRequest>* StartCaptureUpload(
    const Specialist& specialist, Workspace& workspace, std::atomic<int>& uploads, int max_uploads,
    v1::PutCaptureResponse* response) {
  return new CaptureUpload(specialist, workspace, uploads, max_uploads, response);
}

}  // namespace solward::runtime
