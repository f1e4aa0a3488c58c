#include "clients/cli/connection.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc_server.h"
#include "common/sha256.h"
#include "common/status.h"

namespace solward::cli {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr absl::Duration kCallTimeout = absl::Minutes(2);

bool HasEnded(v1::AnalysisState state) {
  return state == v1::ANALYSIS_STATE_SUCCEEDED || state == v1::ANALYSIS_STATE_FAILED ||
         state == v1::ANALYSIS_STATE_CANCELLED;
}

absl::StatusOr<uint64_t> RegularFileSize(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) {
    return MakeError(absl::StatusCode::kNotFound, "CAPTURE_NOT_FOUND",
                     absl::StrCat(path, ": no such file; give the path of a capture"));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_NOT_A_FILE",
                     absl::StrCat(path,
                                  ": expected a capture file, found something else "
                                  "(a folder or a device); name each file"));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) {
    return MakeError(absl::StatusCode::kPermissionDenied, "CAPTURE_UNREADABLE",
                     absl::StrCat(path, ": ", error.message()));
  }
  return size;
}

}  // namespace

std::string DefaultTarget() {
  if (const char* given = std::getenv("SOLWARD_COORDINATOR"); given != nullptr && *given != '\0') {
    return given;
  }
  if (geteuid() == 0) return "unix:/run/solward/coordinator.sock";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && *runtime != '\0'
                                 ? std::string(runtime)
                                 : absl::StrCat("/tmp/solward-", geteuid());
  return absl::StrCat("unix:", folder, "/solward/coordinator.sock");
}

Connection::Connection(const std::string& target, const std::string& ca_file, std::stop_token stop)
    : target_(target),
      stop_(std::move(stop)),
      channel_(DialTarget(target, ca_file)),
      stub_(v1::AnalysisService::NewStub(channel_)) {}

void Connection::Prepare(grpc::ClientContext& context) const {
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
}

absl::Status Connection::Explain(const grpc::Status& status) const {
  absl::Status out = FromGrpcStatus(status);
  if (out.code() == absl::StatusCode::kUnavailable && ErrorReason(out).empty()) {
    return MakeError(absl::StatusCode::kUnavailable, "COORDINATOR_UNREACHABLE",
                     absl::StrCat("no coordinator answers at ", target_, " (", out.message(),
                                  "); start solward-coordinator, name another with --coordinator, "
                                  "or use --local"));
  }
  return out;
}

absl::Status Connection::WaitReady(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  while (!channel_->WaitForConnected(
      absl::ToChronoTime(std::min(end, absl::Now() + absl::Milliseconds(20))))) {
    if (stop_.stop_requested()) return absl::CancelledError("interrupted");
    if (absl::Now() >= end) {
      return Explain(grpc::Status(grpc::StatusCode::UNAVAILABLE, "not connected in time"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ArtifactReference> Connection::UploadCapture(const std::string& path) {
  ASSIGN_OR_RETURN(const uint64_t size, RegularFileSize(path));
  ASSIGN_OR_RETURN(std::string sha256, Sha256OfFile(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(absl::StatusCode::kPermissionDenied, "CAPTURE_UNREADABLE",
                     absl::StrCat(path, ": cannot be opened for reading"));
  }
  grpc::ClientContext context;
  const std::stop_callback cancel(stop_, [&context] { context.TryCancel(); });
  v1::UploadCaptureResponse response;
  auto writer = stub_->UploadCapture(&context, &response);
  v1::UploadCaptureRequest part;
  part.mutable_header()->set_label(std::filesystem::path(path).filename().string());
  part.mutable_header()->set_size(size);
  part.mutable_header()->set_sha256(sha256);
  bool open = writer->Write(part);
  std::vector<char> buffer(kChunkBytes);
  while (open && file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (file.gcount() == 0) break;
    part.set_data(buffer.data(), static_cast<size_t>(file.gcount()));
    open = writer->Write(part);
  }
  writer->WritesDone();
  RETURN_IF_ERROR(Annotate(Explain(writer->Finish()), path));
  return response.artifact();
}

absl::StatusOr<v1::Analysis> Connection::Submit(const v1::SubmitAnalysisRequest& request) {
  ASSIGN_OR_RETURN(v1::SubmitAnalysisResponse response,
                   Call(&v1::AnalysisService::Stub::SubmitAnalysis, request));
  return response.analysis();
}

absl::Status Connection::Watch(const std::string& analysis_id, uint64_t after_sequence,
                               bool stop_at_questions,
                               const std::function<void(const v1::AnalysisEvent&)>& on_event) {
  constexpr int kReconnects = 12;
  bool connected = false;
  for (int attempt = 0;; ++attempt) {
    grpc::ClientContext context;
    const std::stop_callback cancel(stop_, [&context] { context.TryCancel(); });
    v1::WatchAnalysisRequest request;
    request.set_analysis_id(analysis_id);
    request.set_after_sequence(after_sequence);
    auto reader = stub_->WatchAnalysis(&context, request);
    v1::WatchAnalysisResponse response;
    bool ended = false;
    while (!ended && reader->Read(&response)) {
      attempt = 0;
      connected = true;
      after_sequence = response.event().sequence();
      on_event(response.event());
      ended = HasEnded(response.event().state()) ||
              (stop_at_questions && response.event().state() == v1::ANALYSIS_STATE_INPUT_REQUIRED);
    }
    if (ended) {
      context.TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    absl::Status status = Explain(reader->Finish());
    if (status.ok()) return status;
    if (stop_.stop_requested()) return absl::CancelledError("interrupted");
    const bool again = connected && status.code() == absl::StatusCode::kUnavailable;
    if (!again || attempt >= kReconnects) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * (attempt + 1)));
  }
}

absl::Status Connection::Download(
    const std::string& artifact_id, const std::string& instance,
    const std::function<absl::Status(const std::string& data)>& sink) {
  grpc::ClientContext context;
  const std::stop_callback cancel(stop_, [&context] { context.TryCancel(); });
  v1::DownloadArtifactRequest request;
  request.set_artifact_id(artifact_id);
  request.set_specialist_instance(instance);
  auto reader = stub_->DownloadArtifact(&context, request);
  v1::DownloadArtifactResponse response;
  while (reader->Read(&response)) {
    absl::Status written = sink(response.data());
    if (!written.ok()) {
      context.TryCancel();
      reader->Finish();
      return written;
    }
  }
  return Explain(reader->Finish());
}

}  // namespace solward::cli
