// Sends one delegation to a specialist that can take it.
#ifndef SOLWARD_COORDINATOR_DELEGATION_DISPATCHER_H_
#define SOLWARD_COORDINATOR_DELEGATION_DISPATCHER_H_

#include <functional>
#include <stop_token>

#include "solward/v1/analysis.pb.h"

namespace solward::delegation {

// Thread-safe.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  // Blocks until the delegation has ended. The outcome carries a result or an
  // error (UNAVAILABLE: no such specialist is registered and healthy).
  // `on_progress` is called from the calling thread or one of the dispatcher's.
  virtual v1::DelegationOutcome Dispatch(
      const v1::PlannedDelegation& planned,
      const std::function<void(const v1::DelegationProgressed&)>& on_progress,
      std::stop_token stop) = 0;
};

}  // namespace solward::delegation

#endif  // SOLWARD_COORDINATOR_DELEGATION_DISPATCHER_H_
