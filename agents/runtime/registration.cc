#include "agents/runtime/registration.h"

#include <google/protobuf/util/time_util.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/random/random.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/rpc_server.h"
#include "common/status.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::runtime {
namespace {

constexpr absl::Duration kShortestHeartbeat = absl::Milliseconds(50);
constexpr absl::Duration kLongestHeartbeat = absl::Minutes(5);
constexpr absl::Duration kDefaultHeartbeat = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

}  // namespace

class Registration::Loop {
 public:
  Loop(RegistrationOptions options, std::function<v1::SpecialistDescription()> describe,
       std::function<uint32_t()> running)
      : options_(std::move(options)),
        describe_(std::move(describe)),
        running_(std::move(running)),
        stub_(v1::RegistryService::NewStub(DialTarget(options_.coordinator, options_.ca_file))),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  ~Loop() {
    thread_.request_stop();
    thread_.join();
  }

  bool registered() const { return registered_; }

 private:
  void Run(const std::stop_token& stop) {
    // A wait and a call in progress both end when the stop comes.
    const std::stop_callback wake(stop, [this] {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      if (call_ != nullptr) call_->TryCancel();
    });
    absl::Duration backoff = options_.first_backoff;
    while (!stop.stop_requested()) {
      if (absl::Status status = Register(); status.ok()) {
        backoff = options_.first_backoff;
        BeatUntilLost(stop);
        continue;
      } else {
        NoteFailure(status, backoff);
      }
      Sleep(Jitter(backoff));
      backoff = std::min(backoff * 2, options_.longest_backoff);
    }
    Leave();
  }

  absl::Status Register() {
    v1::RegisterSpecialistRequest request;
    *request.mutable_description() = describe_();
    request.set_target(options_.advertise);
    v1::RegisterSpecialistResponse response;
    RETURN_IF_ERROR(Call(options_.call_timeout, [&](grpc::ClientContext* context) {
      return stub_->RegisterSpecialist(context, request, &response);
    }));
    id_ = response.registration_id();
    interval_ = kDefaultHeartbeat;
    if (response.has_heartbeat_interval()) {
      interval_ =
          std::clamp(absl::Nanoseconds(google::protobuf::util::TimeUtil::DurationToNanoseconds(
                         response.heartbeat_interval())),
                     kShortestHeartbeat, kLongestHeartbeat);
    }
    registered_ = true;
    failure_noted_ = false;
    Log(LogLevel::kInfo, "registered",
        {{"coordinator", options_.coordinator},
         {"registration", id_},
         {"advertised", options_.advertise}});
    return absl::OkStatus();
  }

  // Returns when the coordinator does not answer, does not know us, or at stop.
  void BeatUntilLost(const std::stop_token& stop) {
    while (true) {
      Sleep(interval_);
      if (stop.stop_requested()) return;
      v1::HeartbeatRequest request;
      request.set_registration_id(id_);
      request.set_running_delegations(running_());
      v1::HeartbeatResponse response;
      const absl::Status status = Call(options_.call_timeout, [&](grpc::ClientContext* context) {
        return stub_->Heartbeat(context, request, &response);
      });
      if (status.ok()) continue;
      if (stop.stop_requested()) return;
      registered_ = false;
      Log(LogLevel::kWarning, "registration lost",
          {{"coordinator", options_.coordinator}, {"error", std::string(status.message())}});
      return;
    }
  }

  void Leave() {
    if (!registered_) return;
    registered_ = false;
    v1::LeaveRegistryRequest request;
    request.set_registration_id(id_);
    v1::LeaveRegistryResponse response;
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kLeaveTimeout));
    const grpc::Status status = stub_->LeaveRegistry(&context, request, &response);
    Log(LogLevel::kInfo, status.ok() ? "left the registry" : "could not leave the registry",
        {{"coordinator", options_.coordinator}, {"error", status.error_message()}});
  }

  absl::Status Call(absl::Duration timeout,
                    const std::function<grpc::Status(grpc::ClientContext*)>& call) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return absl::CancelledError("stopping");
      call_ = &context;
    }
    const grpc::Status status = call(&context);
    absl::MutexLock lock(&mutex_);
    call_ = nullptr;
    return FromGrpcStatus(status);
  }

  void NoteFailure(const absl::Status& status, absl::Duration backoff) {
    // Once per outage: an agent may wait for its coordinator for days.
    if (std::exchange(failure_noted_, true)) return;
    Log(LogLevel::kWarning, "cannot register; trying on",
        {{"coordinator", options_.coordinator},
         {"error", std::string(status.message())},
         {"next", absl::FormatDuration(backoff)}});
  }

  // So that many specialists do not come back at the same moment.
  absl::Duration Jitter(absl::Duration duration) {
    return duration * absl::Uniform(random_, 0.5, 1.0);
  }

  void Sleep(absl::Duration duration) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), duration);
  }

  const RegistrationOptions options_;
  const std::function<v1::SpecialistDescription()> describe_;
  const std::function<uint32_t()> running_;
  const std::unique_ptr<v1::RegistryService::Stub> stub_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> registered_{false};
  // Of the thread alone.
  absl::BitGen random_;
  std::string id_;
  absl::Duration interval_ = kDefaultHeartbeat;
  bool failure_noted_ = false;

  std::jthread thread_;  // last: starts when everything else is there
};

Registration::Registration(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Registration::~Registration() = default;

std::unique_ptr<Registration> Registration::Start(
    RegistrationOptions options, std::function<v1::SpecialistDescription()> describe,
    std::function<uint32_t()> running_delegations) {
  return std::unique_ptr<Registration>(new Registration(std::make_unique<Loop>(
      std::move(options), std::move(describe), std::move(running_delegations))));
}

bool Registration::registered() const { return loop_->registered(); }

}  // namespace solward::runtime
