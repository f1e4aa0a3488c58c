// Registry: which specialists can be asked right now.
//
// A specialist registers with the target it can be dialled at, sends heartbeats
// and leaves. It is healthy while its last heartbeat is recent. Registering is
// confirmed by calling Describe at that target, so that nobody announces a
// specialist that is not there.
#ifndef SOLWARD_COORDINATOR_DELEGATION_REGISTRY_H_
#define SOLWARD_COORDINATOR_DELEGATION_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "solward/v1/analysis.pb.h"
#include "solward/v1/specialist.pb.h"

namespace grpc {
class Channel;
}

namespace solward::delegation {

// Names of the specialists the coordinator knows how to ask.
inline constexpr absl::string_view kProfilingSpecialist = "perf-profiling-specialist";
inline constexpr absl::string_view kCudaGraphSpecialist = "perf-torch-cuda-graph-specialist";

struct RegistryOptions {
  absl::Duration heartbeat_interval = absl::Seconds(5);
  // Healthy while the last heartbeat is not older than this.
  absl::Duration expiry = absl::Seconds(15);
  // Forgotten when the last heartbeat is older than this.
  absl::Duration forget = absl::Minutes(10);
  absl::Duration describe_deadline = absl::Seconds(3);
  size_t max_specialists = 1024;
  // Refuses targets that may not be dialled; empty: all may.
  std::function<absl::Status(const std::string&)> check_target;
  std::function<absl::Time()> now;                                         // empty: absl::Now
  std::function<std::shared_ptr<grpc::Channel>(const std::string&)> dial;  // empty: DialTarget
};

// A specialist one can call.
struct Endpoint {
  v1::SpecialistDescription description;
  std::string target;
  std::shared_ptr<grpc::Channel> channel;
};

struct Registration {
  std::string id;
  absl::Duration heartbeat_interval;
};

// Thread-safe.
class Registry {
 public:
  explicit Registry(RegistryOptions options);

  // Calls Describe at `target`; blocks up to the describe deadline. What
  // Describe answers is kept. The same instance registering again replaces its
  // entry when the same caller does it (ALREADY_EXISTS otherwise, while healthy).
  absl::StatusOr<Registration> Register(const std::string& caller,
                                        const v1::SpecialistDescription& description,
                                        const std::string& target);
  // NOT_FOUND (REGISTRATION_UNKNOWN): register again.
  absl::Status Heartbeat(const std::string& caller, const std::string& registration_id,
                         uint32_t running_delegations);
  absl::Status Leave(const std::string& caller, const std::string& registration_id);

  // In order of name and instance.
  std::vector<v1::RegisteredSpecialist> List() const;

  // The least busy healthy specialist of this name; with an instance id, that
  // one. UNAVAILABLE (SPECIALIST_UNAVAILABLE) says what is registered instead.
  absl::StatusOr<Endpoint> Find(absl::string_view name, absl::string_view instance) const;
  // The same, waiting for one to register until `deadline` or `stop`.
  absl::StatusOr<Endpoint> WaitFor(absl::string_view name, absl::string_view instance,
                                   absl::Time deadline, const std::stop_token& stop) const;
  // Every healthy specialist, or the one of this instance.
  std::vector<Endpoint> FindAll(absl::string_view instance = "") const;

  // Counts a delegation as running at an instance while the result lives.
  class Running;
  std::unique_ptr<Running> CountRunning(const std::string& instance);

 private:
  struct Entry {
    std::string caller;
    Endpoint endpoint;
    absl::Time last_heartbeat;
    uint32_t reported_running = 0;
  };

  absl::Time Now() const { return options_.now ? options_.now() : absl::Now(); }
  bool Healthy(const Entry& entry) const { return Now() - entry.last_heartbeat <= options_.expiry; }
  void ForgetOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckReplaces(const std::string& caller, const std::string& instance) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Endpoint> FindLocked(absl::string_view name, absl::string_view instance) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t BusyOf(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::map<std::string, Entry>::iterator> FindOwn(const std::string& caller,
                                                                 const std::string& registration_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RegistryOptions options_;
  mutable absl::Mutex mutex_;
  mutable absl::CondVar changed_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);        // by registration id
  std::map<std::string, uint32_t> dispatched_ ABSL_GUARDED_BY(mutex_);  // by instance id
};

class Registry::Running {
 public:
  Running(Registry& registry, std::string instance);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Registry& registry_;
  const std::string instance_;
};

}  // namespace solward::delegation

#endif  // SOLWARD_COORDINATOR_DELEGATION_REGISTRY_H_
