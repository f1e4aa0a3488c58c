// The CLI's way to a coordinator: one channel, one stub, errors as Status.
#ifndef SOLWARD_CLIENTS_CLI_CONNECTION_H_
#define SOLWARD_CLIENTS_CLI_CONNECTION_H_

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "solward/v1/analysis.grpc.pb.h"

namespace solward::cli {

// $SOLWARD_COORDINATOR, or the Unix socket where a coordinator of this user
// (of the system, for root) listens by default.
std::string DefaultTarget();

// Not thread-safe; calls end early with CANCELLED once `stop` is requested.
class Connection {
 public:
  Connection(const std::string& target, const std::string& ca_file, std::stop_token stop);

  // UNAVAILABLE naming the target and how to start a coordinator.
  absl::Status WaitReady(absl::Duration timeout);

  absl::StatusOr<v1::ArtifactReference> UploadCapture(const std::string& path);
  absl::StatusOr<v1::Analysis> Submit(const v1::SubmitAnalysisRequest& request);
  // Calls `on_event` for every event after `after_sequence`, reconnecting when
  // the stream breaks; returns at the end of the analysis or when it waits for
  // answers and `stop_at_questions` is set.
  absl::Status Watch(const std::string& analysis_id, uint64_t after_sequence,
                     bool stop_at_questions,
                     const std::function<void(const v1::AnalysisEvent&)>& on_event);

  // One unary call of the service: Call(&Stub::GetAnalysis, request).
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::AnalysisService::Stub::*method)(
                                    grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    grpc::ClientContext context;
    Prepare(context);
    const std::stop_callback cancel(stop_, [&context] { context.TryCancel(); });
    Response response;
    const absl::Status status = Explain((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::Status Download(const std::string& artifact_id, const std::string& instance,
                        const std::function<absl::Status(const std::string& data)>& sink);

  const std::string& target() const { return target_; }

 private:
  void Prepare(grpc::ClientContext& context) const;
  absl::Status Explain(const grpc::Status& status) const;

  std::string target_;
  std::stop_token stop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AnalysisService::Stub> stub_;
};

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_CONNECTION_H_
