// Keeps a specialist registered at its coordinator: registers, sends
// heartbeats, registers again when the coordinator forgot it or was away, and
// leaves at the end.
#ifndef SOLWARD_AGENTS_RUNTIME_REGISTRATION_H_
#define SOLWARD_AGENTS_RUNTIME_REGISTRATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "solward/v1/specialist.pb.h"

namespace solward::runtime {

struct RegistrationOptions {
  std::string coordinator;  // gRPC target
  std::string ca_file;      // TLS when set
  std::string advertise;    // target the coordinator can dial
  absl::Duration first_backoff = absl::Milliseconds(200);
  absl::Duration longest_backoff = absl::Seconds(30);
  absl::Duration call_timeout = absl::Seconds(5);
};

// Runs on a thread of its own until destruction, which leaves the registry
// (waiting at most two seconds for it).
class Registration {
 public:
  // Both functions are called from that thread and must live as long as this.
  static std::unique_ptr<Registration> Start(RegistrationOptions options,
                                             std::function<v1::SpecialistDescription()> describe,
                                             std::function<uint32_t()> running_delegations);
  ~Registration();

  // A coordinator knows this specialist at the moment.
  bool registered() const;

 private:
  class Loop;
  explicit Registration(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_REGISTRATION_H_
