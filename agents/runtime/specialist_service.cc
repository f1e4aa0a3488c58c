#include "agents/runtime/specialist_service.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/runtime/artifact_transfer.h"
#include "agents/runtime/request_checks.h"
#include "agents/runtime/work_pool.h"
#include "common/rpc_server.h"
#include "common/status.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::runtime {
namespace {

absl::Status UnknownCaller() {
  return MakeError(absl::StatusCode::kUnauthenticated, "UNKNOWN_CALLER",
                   "the connection does not say who calls; use a Unix socket, loopback or TLS");
}

// The user this process runs as, and root, own the specialist.
bool IsOwner(const std::string& caller) {
  return caller == absl::StrCat("uid:", geteuid()) || caller == "uid:0";
}

// Sends a delegation's progress and end to one caller. The stream may end
// before the delegation does; the delegation runs on. Holds itself until the
// call is done, so that a notification on its way finds it alive.
class DelegateStream final : public grpc::ServerWriteReactor<v1::DelegateResponse>,
                             public DelegationWatcher,
                             public std::enable_shared_from_this<DelegateStream> {
 public:
  static DelegateStream* Start(std::shared_ptr<Delegation> delegation) {
    auto stream = std::make_shared<DelegateStream>(std::move(delegation));
    {
      absl::MutexLock lock(&stream->mutex_);
      stream->self_ = stream;
    }
    stream->delegation_->Watch(stream);
    stream->Pump();
    return stream.get();
  }

  explicit DelegateStream(std::shared_ptr<Delegation> delegation)
      : delegation_(std::move(delegation)) {}

  void OnChange() override { Pump(); }

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      gone_ = gone_ || !ok;
    }
    Pump();
  }

  void OnCancel() override {
    {
      absl::MutexLock lock(&mutex_);
      gone_ = true;
    }
    Pump();
  }

  void OnDone() override {
    std::shared_ptr<DelegateStream> self;
    absl::MutexLock lock(&mutex_);
    self = std::move(self_);
    // `lock` is released before `self`: declared later, destroyed first.
  }

 private:
  // Starts the next write or the finish when none is under way.
  void Pump() {
    absl::MutexLock lock(&mutex_);
    if (writing_ || finished_) return;
    if (gone_) {
      finished_ = true;
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client is gone"));
      return;
    }
    if (auto progress = delegation_->NextProgress(sequence_); progress.has_value()) {
      response_.set_delegation_id(delegation_->identity().id);
      *response_.mutable_progress() = *std::move(progress);
      writing_ = true;
      StartWrite(&response_);
      return;
    }
    end_ = delegation_->end();
    if (end_ == nullptr) return;
    finished_ = true;
    if (end_->status.ok()) {
      StartWriteAndFinish(&end_->response, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      Finish(ToGrpcStatus(end_->status));
    }
  }

  const std::shared_ptr<Delegation> delegation_;
  absl::Mutex mutex_;
  std::shared_ptr<DelegateStream> self_ ABSL_GUARDED_BY(mutex_);
  // The response that is being written; the end is shared with other streams.
  v1::DelegateResponse response_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const DelegationEnd> end_ ABSL_GUARDED_BY(mutex_);
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// A stream that only says why not.
class RefusedStream final : public grpc::ServerWriteReactor<v1::DelegateResponse> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

absl::StatusOr<std::vector<v1::RecomputedMetric>> RecomputeGuarded(
    Specialist& specialist, Workspace& workspace, const v1::RecomputeRequest& request) {
  const std::vector<v1::Metric> metrics(request.metrics().begin(), request.metrics().end());
  absl::StatusOr<std::vector<v1::RecomputedMetric>> verdicts;
  try {
    verdicts = specialist.Recompute(metrics, workspace);
  } catch (const std::exception& error) {
    return MakeError(absl::StatusCode::kInternal, "SPECIALIST_FAILED",
                     absl::StrCat("the specialist failed: ", error.what()));
  }
  if (verdicts.ok() && verdicts->size() != metrics.size()) {
    return MakeError(absl::StatusCode::kInternal, "SPECIALIST_FAILED",
                     absl::StrCat("the specialist answered ", verdicts->size(), " of ",
                                  metrics.size(), " metrics"));
  }
  return verdicts;
}

}  // namespace

class SpecialistService::Impl final : public v1::SpecialistService::CallbackService {
 public:
  Impl(Specialist& specialist, Workspace& workspace, SpecialistServiceOptions options,
       std::unique_ptr<DelegationManager> manager)
      : specialist_(specialist),
        workspace_(workspace),
        options_(std::move(options)),
        manager_(std::move(manager)),
        recompute_pool_(1, options_.recompute_queue) {}

  v1::SpecialistDescription Description() const {
    v1::SpecialistDescription description = specialist_.Describe();
    description.set_instance_id(workspace_.instance_id());
    description.set_concurrency(options_.delegations.concurrency);
    for (const auto& [name, value] : options_.labels) {
      (*description.mutable_labels())[name] = value;
    }
    return description;
  }

  uint32_t running() const { return manager_->running(); }

  void Shutdown() {
    manager_->Shutdown();
    recompute_pool_.Close();
  }

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* /*request*/,
                                     v1::DescribeResponse* response) override {
    *response->mutable_description() = Description();
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerWriteReactor<v1::DelegateResponse>* Delegate(
      grpc::CallbackServerContext* context, const v1::DelegateRequest* request) override {
    absl::StatusOr<std::shared_ptr<Delegation>> delegation = Accept(*context, *request);
    if (!delegation.ok()) return new RefusedStream(delegation.status());
    return DelegateStream::Start(*std::move(delegation));
  }

  grpc::ServerUnaryReactor* CancelDelegation(grpc::CallbackServerContext* context,
                                             const v1::CancelDelegationRequest* request,
                                             v1::CancelDelegationResponse* response) override {
    return Answer(context, CancelFor(RpcServer::CallerOf(*context), *request, *response));
  }

  grpc::ServerWriteReactor<v1::ReadArtifactResponse>* ReadArtifact(
      grpc::CallbackServerContext* /*context*/, const v1::ReadArtifactRequest* request) override {
    return StartArtifactRead(workspace_, *request);
  }

  grpc::ServerReadReactor<v1::PutCaptureRequest>* PutCapture(
      grpc::CallbackServerContext* /*context*/, v1::PutCaptureResponse* response) override {
    return StartCaptureUpload(specialist_, workspace_, uploads_, options_.max_uploads, response);
  }

  grpc::ServerUnaryReactor* Recompute(grpc::CallbackServerContext* context,
                                      const v1::RecomputeRequest* request,
                                      v1::RecomputeResponse* response) override {
    if (absl::Status checked = CheckRecomputeRequest(*request); !checked.ok()) {
      return Answer(context, checked);
    }
    // Reading captures takes long: not on gRPC's thread. The reactor keeps
    // context, request and response alive until it is finished.
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const bool taken = recompute_pool_.Submit([this, reactor, request, response] {
      auto verdicts = RecomputeGuarded(specialist_, workspace_, *request);
      if (verdicts.ok()) response->mutable_metrics()->Assign(verdicts->begin(), verdicts->end());
      reactor->Finish(ToGrpcStatus(verdicts.status()));
    });
    if (!taken) {
      reactor->Finish(ToGrpcStatus(
          MakeError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL",
                    "as many recomputations wait as this specialist takes; ask again later")));
    }
    return reactor;
  }

 private:
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

  absl::StatusOr<std::shared_ptr<Delegation>> Accept(const grpc::CallbackServerContext& context,
                                                     const v1::DelegateRequest& request) {
    const std::string caller = RpcServer::CallerOf(context);
    if (caller == "unknown") return UnknownCaller();
    RETURN_IF_ERROR(CheckDelegationRequest(request.delegation()));
    return manager_->Submit(caller, request.delegation(), absl::FromChrono(context.deadline()));
  }

  absl::Status CancelFor(const std::string& caller, const v1::CancelDelegationRequest& request,
                         v1::CancelDelegationResponse& response) {
    if (caller == "unknown") return UnknownCaller();
    if (request.which_case() == v1::CancelDelegationRequest::WHICH_NOT_SET) {
      return MakeBadRequest("REQUEST_FIELD", "neither a delegation id nor a key is given",
                            {{"which", "expected delegation_id or key"}});
    }
    ASSIGN_OR_RETURN(const v1::CancelOutcome outcome,
                     manager_->Cancel(caller, IsOwner(caller), request));
    response.set_outcome(outcome);
    return absl::OkStatus();
  }

  Specialist& specialist_;
  Workspace& workspace_;
  const SpecialistServiceOptions options_;
  const std::unique_ptr<DelegationManager> manager_;
  WorkPool recompute_pool_;
  std::atomic<int> uploads_{0};
};

SpecialistService::SpecialistService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SpecialistService::~SpecialistService() { Shutdown(); }

absl::StatusOr<std::unique_ptr<SpecialistService>> SpecialistService::Create(
    Specialist& specialist, Workspace& workspace, const SpecialistServiceOptions& options) {
  ASSIGN_OR_RETURN(auto manager,
                   DelegationManager::Create(specialist, workspace, options.delegations));
  return std::unique_ptr<SpecialistService>(new SpecialistService(
      std::make_unique<Impl>(specialist, workspace, options, std::move(manager))));
}

grpc::Service* SpecialistService::grpc_service() { return impl_.get(); }
v1::SpecialistDescription SpecialistService::Description() const { return impl_->Description(); }
uint32_t SpecialistService::running_delegations() const { return impl_->running(); }
void SpecialistService::Shutdown() { impl_->Shutdown(); }

}  // namespace solward::runtime
