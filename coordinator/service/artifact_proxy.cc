#include "coordinator/service/artifact_proxy.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/service/request_limits.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::service {
namespace {

absl::Status HeaderFirst() {
  return MakeBadRequest("CAPTURE_HEADER_MISSING",
                        "the first message of an upload must carry the header",
                        {{"header", "expected in the first message and in no other"}});
}

// Client -> Upload (this server) -> Upstream (the specialist). At any time
// either a read from the client or a write to the specialist is under way,
// never both, so the fields need no lock. The upstream call is held open
// (AddHold) because its writes start in the reactions of the other side.
class Upload : public grpc::ServerReadReactor<v1::UploadCaptureRequest> {
 public:
  Upload(grpc::CallbackServerContext* context, delegation::Registry& registry,
         v1::UploadCaptureResponse* response)
      : context_(context), registry_(registry), response_(response), upstream_(*this) {}

  // Call once. Keeps `self`, which is this, until both calls are done.
  void Start(std::shared_ptr<Upload> self) {
    keep_ = std::move(self);
    StartRead(&in_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return InputEnded();
    if (!called_) return Begin();
    if (in_.has_header()) return Refuse(HeaderFirst());
    if (in_.data().size() > kMaxChunkBytes || in_.data().size() > left_) {
      return Refuse(MakeBadRequest(
          "CAPTURE_TOO_LONG", "a chunk or the capture is longer than announced",
          {{"data", absl::StrCat("at most ", kMaxChunkBytes, " bytes a message and ", left_,
                                 " more of this capture expected, found ", in_.data().size())}}));
    }
    left_ -= in_.data().size();
    out_.Clear();
    out_.mutable_data()->swap(*in_.mutable_data());
    upstream_.StartWrite(&out_);
  }
  // The upstream call was made from this one and is cancelled with it; then the
  // read or write under way fails.
  void OnCancel() override {}
  void OnDone() override { Release(); }

 private:
  class Upstream : public grpc::ClientWriteReactor<v1::PutCaptureRequest> {
   public:
    explicit Upstream(Upload& upload) : upload_(upload) {}
    void OnWriteDone(bool ok) override {
      if (ok)
        upload_.StartRead(&upload_.in_);
      else
        RemoveHold();
    }
    void OnDone(const grpc::Status& status) override {
      upload_.UpstreamEnded(status);
      upload_.Release();
    }

   private:
    Upload& upload_;
  };

  void Begin() {
    if (!in_.has_header()) return Refuse(HeaderFirst());
    if (absl::Status status = CheckCaptureHeader(in_.header()); !status.ok()) return Refuse(status);
    absl::StatusOr<delegation::Endpoint> endpoint =
        registry_.Find(delegation::kProfilingSpecialist, "");
    if (!endpoint.ok()) return Refuse(endpoint.status());
    instance_ = endpoint->description.instance_id();
    left_ = in_.header().size();
    stub_ = v1::SpecialistService::NewStub(endpoint->channel);
    call_ = grpc::ClientContext::FromCallbackServerContext(*context_);
    called_ = true;
    ++parts_;
    *out_.mutable_header() = in_.header();
    stub_->async()->PutCapture(call_.get(), &answer_, &upstream_);
    upstream_.AddHold();
    upstream_.StartWrite(&out_);
    upstream_.StartCall();
  }

  void InputEnded() {
    if (!called_) return Refuse(HeaderFirst());
    upstream_.StartWritesDone();
    upstream_.RemoveHold();
  }

  // Ends the upload with this error, whatever the specialist says.
  void Refuse(const absl::Status& status) {
    if (!called_) return Finish(ToGrpcStatus(status));
    refused_ = status;
    call_->TryCancel();
    upstream_.RemoveHold();
  }

  void UpstreamEnded(const grpc::Status& status) {
    if (!refused_.ok()) return Finish(ToGrpcStatus(refused_));
    if (status.ok()) {
      *response_->mutable_artifact() = std::move(*answer_.mutable_artifact());
      response_->mutable_artifact()->set_specialist_instance(instance_);
    }
    Finish(status);
  }

  void Release() {
    if (--parts_ == 0) keep_.reset();
  }

  grpc::CallbackServerContext* const context_;
  delegation::Registry& registry_;
  v1::UploadCaptureResponse* const response_;
  std::atomic<int> parts_ = 1;  // this reactor, and the upstream one once called
  bool called_ = false;
  uint64_t left_ = 0;  // bytes announced and not yet seen
  std::string instance_;
  absl::Status refused_;
  v1::UploadCaptureRequest in_;
  v1::PutCaptureRequest out_;
  v1::PutCaptureResponse answer_;
  std::unique_ptr<v1::SpecialistService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> call_;
  Upstream upstream_;
  std::shared_ptr<Upload> keep_;
};

// Specialist -> Upstream -> Download (this server) -> client, the same way.
class Download : public grpc::ServerWriteReactor<v1::DownloadArtifactResponse> {
 public:
  Download(grpc::CallbackServerContext* context, delegation::Registry& registry,
           const v1::DownloadArtifactRequest& request)
      : context_(context), registry_(registry), request_(request) {
    wanted_.set_artifact_id(request.artifact_id());
    endpoints_ = registry.FindAll(request.specialist_instance());
  }

  // Call once. Keeps `self`, which is this, until every call is done.
  void Start(std::shared_ptr<Download> self) {
    keep_ = std::move(self);
    absl::Status status;
    if (request_.artifact_id().empty()) {
      status = MakeBadRequest("ARTIFACT_ID_MISSING", "artifact_id: expected, found none",
                              {{"artifact_id", "the id of an artifact expected"}});
    } else if (endpoints_.empty()) {
      status = registry_.Find("", request_.specialist_instance()).status();
    }
    if (status.ok())
      Ask();
    else
      Finish(ToGrpcStatus(status));
  }

  void OnWriteDone(bool ok) override {
    if (ok) return upstream_->StartRead(&in_);
    call_->TryCancel();
    upstream_->RemoveHold();
  }
  void OnCancel() override {}
  void OnDone() override { Release(); }

 private:
  class Upstream : public grpc::ClientReadReactor<v1::ReadArtifactResponse> {
   public:
    explicit Upstream(Download& download) : download_(download) {}
    void OnReadDone(bool ok) override {
      if (ok)
        download_.PassOn();
      else
        RemoveHold();
    }
    void OnDone(const grpc::Status& status) override {
      Download& download = download_;
      const std::unique_ptr<Upstream> self = std::move(download.upstream_);
      download.UpstreamEnded(status);
      download.Release();
    }

   private:
    Download& download_;
  };

  // Asks the next specialist. Each call has its own reactor.
  void Ask() {
    ++parts_;
    stub_ = v1::SpecialistService::NewStub(endpoints_[next_].channel);
    call_ = grpc::ClientContext::FromCallbackServerContext(*context_);
    upstream_ = std::make_unique<Upstream>(*this);
    stub_->async()->ReadArtifact(call_.get(), &wanted_, upstream_.get());
    upstream_->AddHold();
    upstream_->StartRead(&in_);
    upstream_->StartCall();
  }

  void PassOn() {
    passed_ = true;
    out_.Clear();
    if (in_.has_artifact()) {
      *out_.mutable_artifact() = std::move(*in_.mutable_artifact());
      out_.mutable_artifact()->set_specialist_instance(endpoints_[next_].description.instance_id());
    }
    out_.mutable_data()->swap(*in_.mutable_data());
    in_.Clear();
    StartWrite(&out_);
  }

  void UpstreamEnded(const grpc::Status& status) {
    const bool unknown = status.error_code() == grpc::StatusCode::NOT_FOUND && !passed_;
    if (unknown && next_ + 1 < endpoints_.size()) {
      ++next_;
      return Ask();
    }
    Finish(status);
  }

  void Release() {
    if (--parts_ == 0) keep_.reset();
  }

  grpc::CallbackServerContext* const context_;
  delegation::Registry& registry_;
  const v1::DownloadArtifactRequest& request_;
  std::atomic<int> parts_ = 1;  // this reactor, and the upstream one while called
  std::vector<delegation::Endpoint> endpoints_;
  size_t next_ = 0;
  bool passed_ = false;  // the client has got bytes
  v1::ReadArtifactRequest wanted_;
  v1::ReadArtifactResponse in_;
  v1::DownloadArtifactResponse out_;
  std::unique_ptr<v1::SpecialistService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> call_;
  std::unique_ptr<Upstream> upstream_;
  std::shared_ptr<Download> keep_;
};

}  // namespace

grpc::ServerReadReactor<v1::UploadCaptureRequest>* ForwardUpload(
    grpc::CallbackServerContext* context, delegation::Registry& registry,
    v1::UploadCaptureResponse* response) {
  auto upload = std::make_shared<Upload>(context, registry, response);
  upload->Start(upload);
  return upload.get();
}

grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* ForwardDownload(
    grpc::CallbackServerContext* context, delegation::Registry& registry,
    const v1::DownloadArtifactRequest& request) {
  auto download = std::make_shared<Download>(context, registry, request);
  download->Start(download);
  return download.get();
}

}  // namespace solward::service
