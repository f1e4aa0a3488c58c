#include "coordinator/delegation/grpc_dispatcher.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/rpc_server.h"
#include "common/status.h"
#include "google/protobuf/util/time_util.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::delegation {
namespace {

using google::protobuf::util::TimeUtil;

absl::Status Cancelled() {
  return MakeError(absl::StatusCode::kCancelled, "DELEGATION_CANCELLED",
                   "the delegation was cancelled");
}

absl::Time DeadlineOf(const v1::DelegationRequest& request, const DispatcherOptions& options) {
  if (!request.constraints().has_time_budget()) return absl::Now() + options.deadline;
  const int64_t budget_ns = TimeUtil::DurationToNanoseconds(request.constraints().time_budget());
  return absl::Now() + absl::Nanoseconds(std::max<int64_t>(budget_ns, 0)) + options.deadline_margin;
}

// Sleeps `duration`; false when `stop` came first.
bool SleepUnlessStopped(absl::Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, absl::ToChronoNanoseconds(duration), [] { return false; });
  return !stop.stop_requested();
}

// Half to the whole of first * 2^attempt, so that many do not try again at once.
absl::Duration Backoff(absl::Duration first, int attempt) {
  absl::BitGen random;
  return first * (1 << attempt) * absl::Uniform(random, 0.5, 1.0);
}

}  // namespace

// One call of Delegate: what came of it so far.
struct GrpcDispatcher::Attempt {
  const v1::DelegateRequest& request;
  v1::DelegationOutcome& outcome;
  bool heard = false;  // the specialist said something: trying again is not safe to assume

  // False when the response ends the stream.
  bool Take(v1::DelegateResponse&& response, const Endpoint& endpoint,
            const std::function<void(const v1::DelegationProgressed&)>& on_progress) {
    heard = true;
    outcome.set_delegation_id(response.delegation_id());
    if (response.has_result()) {
      *outcome.mutable_result() = std::move(*response.mutable_result());
      for (auto& artifact : *outcome.mutable_result()->mutable_artifacts()) {
        if (artifact.specialist_instance().empty()) {
          artifact.set_specialist_instance(endpoint.description.instance_id());
        }
      }
      return false;
    }
    if (response.has_progress()) {
      v1::DelegationProgressed progressed;
      progressed.set_specialist(endpoint.description.name());
      progressed.set_specialist_instance(endpoint.description.instance_id());
      progressed.set_delegation_id(response.delegation_id());
      *progressed.mutable_progress() = std::move(*response.mutable_progress());
      on_progress(progressed);
    }
    return true;
  }
};

GrpcDispatcher::GrpcDispatcher(Registry& registry, DispatcherOptions options)
    : registry_(registry), options_(options) {}

v1::DelegationOutcome GrpcDispatcher::Dispatch(
    const v1::PlannedDelegation& planned,
    const std::function<void(const v1::DelegationProgressed&)>& on_progress, std::stop_token stop) {
  v1::DelegationOutcome outcome;
  *outcome.mutable_planned() = planned;
  // Captures lie with profiling specialists; any other is asked about the
  // numbers that came out of them.
  absl::StatusOr<std::string> instance = planned.specialist() == kProfilingSpecialist
                                             ? InstanceOfCaptures(planned.request())
                                             : std::string();
  const absl::Status status =
      instance.ok() ? Run(*instance, stop, on_progress, outcome) : instance.status();
  if (!status.ok()) {
    *outcome.mutable_error() = ToAnalysisError(status);
    Log(LogLevel::kWarning, "delegation failed",
        {{"specialist", planned.specialist()},
         {"instance", outcome.specialist_instance()},
         {"key", planned.request().key()},
         {"code", std::to_string(static_cast<int>(status.code()))},
         {"reason", outcome.error().reason()},
         {"message", outcome.error().message()}});
  }
  return outcome;
}

absl::Status GrpcDispatcher::Run(
    const std::string& instance, const std::stop_token& stop,
    const std::function<void(const v1::DelegationProgressed&)>& on_progress,
    v1::DelegationOutcome& outcome) {
  v1::DelegateRequest request;
  *request.mutable_delegation() = outcome.planned().request();
  const std::string specialist = outcome.planned().specialist();
  const absl::Time deadline = DeadlineOf(request.delegation(), options_);
  const absl::Duration patience =
      outcome.planned().wave() > 1 ? absl::ZeroDuration() : options_.wait_for_specialist;
  absl::Status status;
  for (int attempt = 0; attempt < std::max(1, options_.max_attempts); ++attempt) {
    if (attempt > 0 && !SleepUnlessStopped(Backoff(options_.first_backoff, attempt - 1), stop)) {
      return Cancelled();
    }
    // Looked up again each time: it may have come back somewhere else.
    absl::StatusOr<Endpoint> endpoint =
        registry_.WaitFor(specialist, instance, std::min(absl::Now() + patience, deadline), stop);
    if (stop.stop_requested()) return Cancelled();
    if (!endpoint.ok()) return endpoint.status();
    outcome.set_specialist_instance(endpoint->description.instance_id());
    Attempt call{request, outcome};
    status = Try(*endpoint, deadline, stop, on_progress, call);
    if (status.ok() || call.heard || !absl::IsUnavailable(status)) break;
  }
  return status;
}

absl::Status GrpcDispatcher::Try(
    const Endpoint& endpoint, absl::Time deadline, const std::stop_token& stop,
    const std::function<void(const v1::DelegationProgressed&)>& on_progress, Attempt& attempt) {
  const auto running = registry_.CountRunning(endpoint.description.instance_id());
  const auto stub = v1::SpecialistService::NewStub(endpoint.channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  grpc::Status ended;
  bool got_result = false;
  {
    std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto stream = stub->Delegate(&context, attempt.request);
    v1::DelegateResponse response;
    while (!got_result && stream->Read(&response)) {
      got_result = !attempt.Take(std::move(response), endpoint, on_progress);
      response.Clear();
    }
    // The result is the last message: what may follow is nothing to wait for.
    if (got_result) context.TryCancel();
    ended = stream->Finish();
  }
  if (got_result) return absl::OkStatus();
  if (stop.stop_requested()) {
    CancelAt(endpoint, attempt.request.delegation().key());
    return Cancelled();
  }
  if (!ended.ok()) return FromGrpcStatus(ended);
  return MakeError(
      absl::StatusCode::kInternal, "DELEGATION_WITHOUT_RESULT",
      absl::StrCat(endpoint.description.name(), " ", endpoint.description.instance_id(),
                   ": ended the delegation without a result"));
}

void GrpcDispatcher::CancelAt(const Endpoint& endpoint, const std::string& key) {
  if (detached_) return;
  const auto stub = v1::SpecialistService::NewStub(endpoint.channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.cancel_deadline));
  v1::CancelDelegationRequest request;
  request.set_key(key);
  v1::CancelDelegationResponse response;
  const grpc::Status status = stub->CancelDelegation(&context, request, &response);
  if (!status.ok()) {
    Log(LogLevel::kWarning, "a specialist could not be told to cancel",
        {{"instance", endpoint.description.instance_id()},
         {"key", key},
         {"message", status.error_message()}});
  }
}

absl::StatusOr<std::string> InstanceOfCaptures(const v1::DelegationRequest& request) {
  std::string instance;
  for (const v1::ArtifactReference& capture : request.workload().captures().captures()) {
    if (capture.specialist_instance().empty() || capture.specialist_instance() == instance)
      continue;
    if (instance.empty()) {
      instance = capture.specialist_instance();
      continue;
    }
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURES_APART",
                     absl::StrCat("capture ", capture.id(), ": kept by specialist ",
                                  capture.specialist_instance(), ", others by ", instance,
                                  "; one delegation needs its captures with one specialist, "
                                  "upload them again"));
  }
  return instance;
}

v1::AnalysisError ToAnalysisError(const absl::Status& status) {
  v1::AnalysisError error;
  error.set_code(static_cast<int>(status.code()));
  error.set_reason(ErrorReason(status));
  error.set_message(std::string(status.message()));
  return error;
}

}  // namespace solward::delegation
