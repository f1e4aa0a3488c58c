// RegistryService over gRPC: specialists register, send heartbeats and leave.
#ifndef SOLWARD_COORDINATOR_SERVICE_REGISTRY_SERVICE_H_
#define SOLWARD_COORDINATOR_SERVICE_REGISTRY_SERVICE_H_

#include <set>
#include <string>

#include "coordinator/delegation/registry.h"
#include "coordinator/service/work_pool.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::service {

// Thread-safe. Captures and requests of every client go to whoever is
// registered, so only the callers named may register (PERMISSION_DENIED).
class RegistryService : public v1::RegistryService::CallbackService {
 public:
  // `registry` must outlive the service.
  RegistryService(delegation::Registry& registry, std::set<std::string> allowed_callers);

  grpc::ServerUnaryReactor* RegisterSpecialist(grpc::CallbackServerContext*,
                                               const v1::RegisterSpecialistRequest*,
                                               v1::RegisterSpecialistResponse*) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext*, const v1::HeartbeatRequest*,
                                      v1::HeartbeatResponse*) override;
  grpc::ServerUnaryReactor* LeaveRegistry(grpc::CallbackServerContext*,
                                          const v1::LeaveRegistryRequest*,
                                          v1::LeaveRegistryResponse*) override;
  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext*) override;

 private:
  absl::Status Register(const std::string& caller, const v1::RegisterSpecialistRequest& request,
                        v1::RegisterSpecialistResponse& response);

  delegation::Registry& registry_;
  const std::set<std::string> allowed_callers_;
  WorkPool pool_;  // registering calls the specialist back
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_REGISTRY_SERVICE_H_
