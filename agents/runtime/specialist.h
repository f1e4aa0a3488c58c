// What a specialist implements; the runtime (delegation service, workspace,
// registration) does the rest.
#ifndef SOLWARD_AGENTS_RUNTIME_SPECIALIST_H_
#define SOLWARD_AGENTS_RUNTIME_SPECIALIST_H_

#include <functional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/runtime/workspace.h"
#include "solward/v1/specialist.pb.h"

namespace solward::runtime {

// What one running delegation has at hand. Lives until Run returns.
struct DelegationContext {
  Workspace& workspace;
  std::function<void(v1::DelegationPhase, const std::string& message, double fraction)> progress;
  std::stop_token stop;  // cancelled, deadline passed, or shutting down
  absl::Time deadline;
};

// Implementations are thread-safe.
class Specialist {
 public:
  virtual ~Specialist() = default;

  // Name, version, abilities; the runtime fills instance id and concurrency.
  virtual v1::SpecialistDescription Describe() const = 0;

  // Kind of a capture by its content, when a client puts it. UNSPECIFIED for
  // what is no capture of this specialist's. Cheap.
  virtual v1::CaptureKind KindOf(const std::string& /*path*/) const {
    return v1::CAPTURE_KIND_UNSPECIFIED;
  }

  // Request-level errors are a Status; a capture that cannot be read is an
  // outcome inside the result. CANCELLED soon after `stop`.
  virtual absl::StatusOr<v1::DelegationResult> Run(const v1::DelegationRequest& request,
                                                   DelegationContext& context) = 0;

  // One verdict per metric, in order.
  virtual absl::StatusOr<std::vector<v1::RecomputedMetric>> Recompute(
      const std::vector<v1::Metric>& metrics, Workspace& workspace) = 0;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_SPECIALIST_H_
