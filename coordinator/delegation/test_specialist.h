// TestSpecialist: a test double of a specialist, served by a real in-process
// server. It measures nothing: it answers what the test gave it.
#ifndef SOLWARD_COORDINATOR_DELEGATION_TEST_SPECIALIST_H_
#define SOLWARD_COORDINATOR_DELEGATION_TEST_SPECIALIST_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc_server.h"
#include "common/sha256.h"
#include "common/status.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::delegation {

class TestSpecialist : public v1::SpecialistService::Service {
 public:
  using Answer = std::function<absl::StatusOr<v1::DelegationResult>(const v1::DelegationRequest&)>;

  TestSpecialist(const std::string& name, const std::string& instance) {
    description_.set_name(name);
    description_.set_instance_id(instance);
    description_.set_version("0");
  }

  // Listens on a Unix socket below `folder`.
  absl::Status Serve(const std::string& folder) {
    RpcServerOptions options;
    options.listen = {absl::StrCat("unix:", folder, "/", description_.instance_id(), ".sock")};
    ASSIGN_OR_RETURN(server_, RpcServer::Start(options, {this}));
    return absl::OkStatus();
  }
  void StopServing() { server_.reset(); }
  const std::string& target() const { return server_->targets()[0]; }
  const v1::SpecialistDescription& description() const { return description_; }
  v1::SpecialistDescription& mutable_description() { return description_; }

  // What a delegation ends with. Without one: an empty result.
  void AnswerWith(Answer answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // Delegations stop after their first progress until released or cancelled.
  void Hold() {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    held_ = false;
  }
  // The next calls of Delegate fail at once with this, before any event.
  void FailNext(int calls, absl::Status status) {
    absl::MutexLock lock(&mutex_);
    failures_ = calls;
    failure_ = std::move(status);
  }
  void RecomputeWith(std::function<v1::RecomputedMetric(const v1::Metric&)> recompute) {
    absl::MutexLock lock(&mutex_);
    recompute_ = std::move(recompute);
  }

  std::vector<v1::DelegationRequest> requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }
  std::vector<std::string> cancelled_keys() const {
    absl::MutexLock lock(&mutex_);
    return cancelled_;
  }
  // Blocks until that many delegations were asked for; false after 10 s.
  bool WaitForRequests(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return requests_.size() >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(10));
  }
  bool WaitForCancel(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return cancelled_.size() >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(10));
  }

  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::DescribeResponse* response) override {
    *response->mutable_description() = description_;
    return grpc::Status::OK;
  }

  grpc::Status Delegate(grpc::ServerContext* context, const v1::DelegateRequest* request,
                        grpc::ServerWriter<v1::DelegateResponse>* writer) override {
    Answer answer;
    {
      absl::MutexLock lock(&mutex_);
      requests_.push_back(request->delegation());
      if (failures_ > 0) {
        --failures_;
        return ToGrpcStatus(failure_);
      }
      answer = answer_;
    }
    v1::DelegateResponse response;
    response.set_delegation_id("delegation-" + request->delegation().key());
    response.mutable_progress()->set_phase(v1::DELEGATION_PHASE_READING);
    response.mutable_progress()->set_message("reading");
    writer->Write(response);
    {
      absl::MutexLock lock(&mutex_);
      while (held_ && !context->IsCancelled()) {
        mutex_.AwaitWithTimeout(absl::Condition(
                                    +[](bool* held) { return !*held; }, &held_),
                                absl::Milliseconds(10));
      }
    }
    if (context->IsCancelled()) return grpc::Status::CANCELLED;
    absl::StatusOr<v1::DelegationResult> result =
        answer ? answer(request->delegation()) : v1::DelegationResult();
    if (!result.ok()) return ToGrpcStatus(result.status());
    *response.mutable_result() = *std::move(result);
    writer->Write(response);
    return grpc::Status::OK;
  }

  grpc::Status CancelDelegation(grpc::ServerContext*, const v1::CancelDelegationRequest* request,
                                v1::CancelDelegationResponse* response) override {
    absl::MutexLock lock(&mutex_);
    cancelled_.push_back(request->key());
    response->set_outcome(v1::CANCEL_OUTCOME_CANCELLED);
    return grpc::Status::OK;
  }

  grpc::Status PutCapture(grpc::ServerContext*, grpc::ServerReader<v1::PutCaptureRequest>* reader,
                          v1::PutCaptureResponse* response) override {
    v1::PutCaptureRequest part;
    v1::PutCaptureHeader header;
    std::string bytes;
    while (reader->Read(&part)) {
      if (part.has_header())
        header = part.header();
      else
        bytes += part.data();
    }
    if (Sha256Hex(bytes) != header.sha256()) {
      return ToGrpcStatus(MakeError(absl::StatusCode::kInvalidArgument, "DIGEST_DIFFERS",
                                    "the bytes have another SHA-256"));
    }
    v1::ArtifactReference artifact;
    artifact.set_id("art-" + header.sha256().substr(0, 8));
    artifact.set_label(header.label());
    artifact.set_size(bytes.size());
    artifact.set_sha256(header.sha256());
    *response->mutable_artifact() = artifact;
    absl::MutexLock lock(&mutex_);
    kept_[artifact.id()] = {artifact, bytes};
    return grpc::Status::OK;
  }

  grpc::Status ReadArtifact(grpc::ServerContext*, const v1::ReadArtifactRequest* request,
                            grpc::ServerWriter<v1::ReadArtifactResponse>* writer) override {
    std::pair<v1::ArtifactReference, std::string> kept;
    {
      absl::MutexLock lock(&mutex_);
      const auto it = kept_.find(request->artifact_id());
      if (it == kept_.end()) {
        return ToGrpcStatus(MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND",
                                      "artifact " + request->artifact_id() + ": not kept here"));
      }
      kept = it->second;
    }
    constexpr size_t kChunk = 1000;
    for (size_t at = 0; at == 0 || at < kept.second.size(); at += kChunk) {
      v1::ReadArtifactResponse response;
      if (at == 0) *response.mutable_artifact() = kept.first;
      response.set_data(kept.second.substr(at, kChunk));
      if (!writer->Write(response)) return grpc::Status::CANCELLED;
    }
    return grpc::Status::OK;
  }

  grpc::Status Recompute(grpc::ServerContext*, const v1::RecomputeRequest* request,
                         v1::RecomputeResponse* response) override {
    std::function<v1::RecomputedMetric(const v1::Metric&)> recompute;
    {
      absl::MutexLock lock(&mutex_);
      recompute = recompute_;
    }
    for (const v1::Metric& metric : request->metrics()) {
      if (recompute) {
        *response->add_metrics() = recompute(metric);
        continue;
      }
      v1::RecomputedMetric* same = response->add_metrics();
      same->set_key(metric.key());
      same->set_value(metric.value());
      same->set_verdict(v1::RECOMPUTE_VERDICT_MATCHES);
    }
    return grpc::Status::OK;
  }

 private:
  v1::SpecialistDescription description_;
  mutable absl::Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::function<v1::RecomputedMetric(const v1::Metric&)> recompute_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::DelegationRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<v1::ArtifactReference, std::string>> kept_
      ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RpcServer> server_;  // last: stops before the rest goes
};

}  // namespace solward::delegation

#endif  // SOLWARD_COORDINATOR_DELEGATION_TEST_SPECIALIST_H_
