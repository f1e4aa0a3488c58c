#include "coordinator/service/registry_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc_server.h"
#include "common/status.h"
#include "google/protobuf/util/time_util.h"

namespace solward::service {
namespace {

constexpr int kThreads = 2;
constexpr size_t kMaxWaiting = 256;

grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

class RefusedAttach : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse> {
 public:
  void Refuse(std::shared_ptr<RefusedAttach> self) {
    keep_ = std::move(self);
    Finish(ToGrpcStatus(MakeError(
        absl::StatusCode::kUnimplemented, "ATTACH_NOT_AVAILABLE",
        "attaching is for specialists that the coordinator cannot dial, and is not available in "
        "this version; register with a target the coordinator can dial instead")));
  }
  void OnDone() override { keep_.reset(); }

 private:
  std::shared_ptr<RefusedAttach> keep_;
};

}  // namespace

RegistryService::RegistryService(delegation::Registry& registry,
                                 std::set<std::string> allowed_callers)
    : registry_(registry),
      allowed_callers_(std::move(allowed_callers)),
      pool_(kThreads, kMaxWaiting) {}

grpc::ServerUnaryReactor* RegistryService::RegisterSpecialist(
    grpc::CallbackServerContext* context, const v1::RegisterSpecialistRequest* request,
    v1::RegisterSpecialistResponse* response) {
  const std::string caller = RpcServer::CallerOf(*context);
  if (!allowed_callers_.contains(caller)) {
    return End(context, MakeError(absl::StatusCode::kPermissionDenied, "REGISTRATION_NOT_ALLOWED",
                                  absl::StrCat(caller,
                                               ": may not register specialists here; add it to "
                                               "registry.allowed_callers of the coordinator's "
                                               "configuration")));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool taken = pool_.Post([this, reactor, caller, request, response] {
    reactor->Finish(ToGrpcStatus(Register(caller, *request, *response)));
  });
  if (!taken) {
    reactor->Finish(ToGrpcStatus(MakeError(absl::StatusCode::kResourceExhausted, "TOO_BUSY",
                                           "too many registrations at once; try again later")));
  }
  return reactor;
}

absl::Status RegistryService::Register(const std::string& caller,
                                       const v1::RegisterSpecialistRequest& request,
                                       v1::RegisterSpecialistResponse& response) {
  ASSIGN_OR_RETURN(const delegation::Registration registration,
                   registry_.Register(caller, request.description(), request.target()));
  response.set_registration_id(registration.id);
  *response.mutable_heartbeat_interval() = google::protobuf::util::TimeUtil::NanosecondsToDuration(
      absl::ToInt64Nanoseconds(registration.heartbeat_interval));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RegistryService::Heartbeat(grpc::CallbackServerContext* context,
                                                     const v1::HeartbeatRequest* request,
                                                     v1::HeartbeatResponse*) {
  return End(context, registry_.Heartbeat(RpcServer::CallerOf(*context), request->registration_id(),
                                          request->running_delegations()));
}

grpc::ServerUnaryReactor* RegistryService::LeaveRegistry(grpc::CallbackServerContext* context,
                                                         const v1::LeaveRegistryRequest* request,
                                                         v1::LeaveRegistryResponse*) {
  return End(context, registry_.Leave(RpcServer::CallerOf(*context), request->registration_id()));
}

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* RegistryService::Attach(
    grpc::CallbackServerContext*) {
  const auto reactor = std::make_shared<RefusedAttach>();
  reactor->Refuse(reactor);
  return reactor.get();
}

}  // namespace solward::service
