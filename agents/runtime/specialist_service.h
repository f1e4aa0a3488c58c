// The gRPC service of every specialist: delegations, artifacts, captures and
// recomputation around one Specialist and its workspace.
//
//   ASSIGN_OR_RETURN(auto service, SpecialistService::Create(*specialist, *workspace, options));
//   ASSIGN_OR_RETURN(auto server, RpcServer::Start(rpc_options, {service->grpc_service()}));
#ifndef SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_H_
#define SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/runtime/delegation_manager.h"
#include "agents/runtime/specialist.h"
#include "agents/runtime/workspace.h"

namespace grpc {
class Service;
}

namespace solward::runtime {

struct SpecialistServiceOptions {
  DelegationLimits delegations;
  std::map<std::string, std::string> labels;  // of the description
  int max_uploads = 16;                       // captures coming in at a time
  size_t recompute_queue = 16;                // calls waiting; one runs
};

// Thread-safe. `specialist` and `workspace` must outlive it, and it the server.
class SpecialistService {
 public:
  static absl::StatusOr<std::unique_ptr<SpecialistService>> Create(
      Specialist& specialist, Workspace& workspace, const SpecialistServiceOptions& options);
  ~SpecialistService();

  grpc::Service* grpc_service();

  // What Describe answers.
  v1::SpecialistDescription Description() const;
  uint32_t running_delegations() const;

  // Stops delegations and waits for the specialist to return; calls that come
  // later are answered UNAVAILABLE. Before the server's own shutdown. Idempotent.
  void Shutdown();

 private:
  class Impl;
  explicit SpecialistService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_SPECIALIST_SERVICE_H_
