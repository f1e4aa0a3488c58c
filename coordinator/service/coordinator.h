// Coordinator: the whole daemon as one object. Tests and main start the same.
#ifndef SOLWARD_COORDINATOR_SERVICE_COORDINATOR_H_
#define SOLWARD_COORDINATOR_SERVICE_COORDINATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/service/coordinator_config.h"

namespace solward::service {

class Coordinator {
 public:
  // Opens the state folder (made with mode 0700; FAILED_PRECONDITION,
  // STATE_IN_USE, when another coordinator has it), takes up what a former
  // process left running, and serves.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(CoordinatorConfig config);
  // Stops without waiting for what runs.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // What clients can dial.
  const std::vector<std::string>& targets() const;

  // Takes no new work, waits up to `drain` for what runs, interrupts the rest
  // (taken up again at the next start), ends the watchers, stops serving.
  void Shutdown(absl::Duration drain);

 private:
  struct Parts;
  explicit Coordinator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_COORDINATOR_H_
