#include "coordinator/delegation/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/id.h"
#include "common/log.h"
#include "common/rpc_server.h"
#include "common/status.h"
#include "google/protobuf/util/time_util.h"
#include "solward/v1/specialist.grpc.pb.h"

namespace solward::delegation {
namespace {

constexpr size_t kMaxTargetBytes = 1024;
constexpr size_t kMaxNameBytes = 128;
// A description is kept as long as its specialist: it must stay small.
constexpr size_t kMaxDescriptionBytes = 1 << 20;

absl::Status CheckAnnouncement(const v1::SpecialistDescription& description,
                               const std::string& target) {
  std::vector<FieldViolation> violations;
  if (description.name().empty() || description.name().size() > kMaxNameBytes) {
    violations.push_back({"description.name", "1 to 128 characters expected"});
  }
  if (description.instance_id().empty() || description.instance_id().size() > kMaxNameBytes) {
    violations.push_back({"description.instance_id", "1 to 128 characters expected"});
  }
  if (target.empty() || target.size() > kMaxTargetBytes) {
    violations.push_back({"target",
                          "a gRPC target the coordinator can dial expected, as in "
                          "unix:/run/solward/profiling.sock or 127.0.0.1:7301"});
  }
  if (violations.empty()) return absl::OkStatus();
  return MakeBadRequest("REGISTRATION_INVALID", "a specialist cannot be registered like this",
                        violations);
}

absl::StatusOr<v1::SpecialistDescription> Describe(const std::shared_ptr<grpc::Channel>& channel,
                                                   const std::string& target,
                                                   absl::Duration deadline) {
  const auto stub = v1::SpecialistService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  v1::DescribeResponse response;
  const absl::Status status = FromGrpcStatus(stub->Describe(&context, {}, &response));
  if (!status.ok()) {
    return MakeError(
        absl::StatusCode::kUnavailable, "SPECIALIST_UNREACHABLE",
        absl::StrCat(target,
                     ": the specialist does not answer at the target it "
                     "registered (",
                     status.message(), "); register a target that this coordinator can dial"));
  }
  if (response.ByteSizeLong() > kMaxDescriptionBytes) {
    return MakeError(absl::StatusCode::kInvalidArgument, "REGISTRATION_INVALID",
                     absl::StrCat(target, ": the description is larger than 1 MiB"));
  }
  return std::move(*response.mutable_description());
}

absl::Status CheckSame(const v1::SpecialistDescription& announced,
                       const v1::SpecialistDescription& described, const std::string& target) {
  if (announced.name() == described.name() && announced.instance_id() == described.instance_id()) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kInvalidArgument, "REGISTRATION_MISMATCH",
      absl::StrCat(target, ": expected ", announced.name(), " ", announced.instance_id(),
                   " as registered, found ", described.name(), " ", described.instance_id(),
                   "; register the target of this very process"));
}

}  // namespace

Registry::Registry(RegistryOptions options) : options_(std::move(options)) {}

absl::StatusOr<Registration> Registry::Register(const std::string& caller,
                                                const v1::SpecialistDescription& description,
                                                const std::string& target) {
  RETURN_IF_ERROR(CheckAnnouncement(description, target));
  if (options_.check_target) RETURN_IF_ERROR(options_.check_target(target));
  auto channel = options_.dial ? options_.dial(target) : DialTarget(target);
  ASSIGN_OR_RETURN(v1::SpecialistDescription described,
                   Describe(channel, target, options_.describe_deadline));
  RETURN_IF_ERROR(CheckSame(description, described, target));

  absl::MutexLock lock(&mutex_);
  ForgetOld();
  RETURN_IF_ERROR(CheckReplaces(caller, described.instance_id()));
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.second.endpoint.description.instance_id() == described.instance_id();
  });
  if (entries_.size() >= options_.max_specialists) {
    return MakeError(absl::StatusCode::kResourceExhausted, "REGISTRY_FULL",
                     absl::StrCat("the registry holds ", entries_.size(), " specialists already"));
  }
  Registration registration{NewId("reg"), options_.heartbeat_interval};
  Log(LogLevel::kInfo, "specialist registered",
      {{"specialist", described.name()},
       {"instance", described.instance_id()},
       {"target", target}});
  entries_[registration.id] =
      Entry{caller, Endpoint{std::move(described), target, std::move(channel)}, Now(), 0};
  changed_.SignalAll();
  return registration;
}

absl::Status Registry::CheckReplaces(const std::string& caller, const std::string& instance) const {
  for (const auto& [id, entry] : entries_) {
    if (entry.endpoint.description.instance_id() == instance && entry.caller != caller &&
        Healthy(entry)) {
      return MakeError(absl::StatusCode::kAlreadyExists, "INSTANCE_REGISTERED",
                       absl::StrCat("instance ", instance,
                                    ": registered and healthy already, by "
                                    "another user"));
    }
  }
  return absl::OkStatus();
}

void Registry::ForgetOld() {
  std::erase_if(entries_, [&](const auto& entry) {
    return Now() - entry.second.last_heartbeat > options_.forget;
  });
}

absl::StatusOr<std::map<std::string, Registry::Entry>::iterator> Registry::FindOwn(
    const std::string& caller, const std::string& registration_id) {
  const auto it = entries_.find(registration_id);
  if (it != entries_.end() && it->second.caller == caller) return it;
  return MakeError(
      absl::StatusCode::kNotFound, "REGISTRATION_UNKNOWN",
      absl::StrCat("registration '", registration_id,
                   "': not known (the coordinator may have restarted); register again"));
}

absl::Status Registry::Heartbeat(const std::string& caller, const std::string& registration_id,
                                 uint32_t running_delegations) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const auto it, FindOwn(caller, registration_id));
  const bool was_healthy = Healthy(it->second);
  it->second.last_heartbeat = Now();
  it->second.reported_running = running_delegations;
  if (!was_healthy) changed_.SignalAll();
  return absl::OkStatus();
}

absl::Status Registry::Leave(const std::string& caller, const std::string& registration_id) {
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const auto it, FindOwn(caller, registration_id));
  const v1::SpecialistDescription& description = it->second.endpoint.description;
  Log(LogLevel::kInfo, "specialist left",
      {{"specialist", description.name()}, {"instance", description.instance_id()}});
  entries_.erase(it);
  return absl::OkStatus();
}

std::vector<v1::RegisteredSpecialist> Registry::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::RegisteredSpecialist> out;
  for (const auto& [id, entry] : entries_) {
    v1::RegisteredSpecialist specialist;
    *specialist.mutable_description() = entry.endpoint.description;
    specialist.set_target(entry.endpoint.target);
    specialist.set_healthy(Healthy(entry));
    *specialist.mutable_since_heartbeat() = google::protobuf::util::TimeUtil::NanosecondsToDuration(
        absl::ToInt64Nanoseconds(Now() - entry.last_heartbeat));
    out.push_back(std::move(specialist));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::pair(a.description().name(), a.description().instance_id()) <
           std::pair(b.description().name(), b.description().instance_id());
  });
  return out;
}

uint32_t Registry::BusyOf(const Entry& entry) const {
  const auto it = dispatched_.find(entry.endpoint.description.instance_id());
  const uint32_t ours = it == dispatched_.end() ? 0 : it->second;
  return std::max(ours, entry.reported_running);
}

absl::StatusOr<Endpoint> Registry::FindLocked(absl::string_view name,
                                              absl::string_view instance) const {
  const Entry* best = nullptr;
  std::vector<std::string> others;
  for (const auto& [id, entry] : entries_) {
    const v1::SpecialistDescription& description = entry.endpoint.description;
    const bool healthy = Healthy(entry);
    others.push_back(absl::StrCat(description.name(), " ", description.instance_id(),
                                  healthy ? "" : " (no heartbeat)"));
    if (!healthy || (!name.empty() && name != description.name())) continue;
    if (!instance.empty() && instance != description.instance_id()) continue;
    if (best == nullptr || BusyOf(entry) < BusyOf(*best)) best = &entry;
  }
  if (best != nullptr) return best->endpoint;
  const std::string wanted = instance.empty()
                                 ? std::string(name)
                                 : absl::StrCat(name.empty() ? "specialist" : name, " ", instance);
  return MakeError(absl::StatusCode::kUnavailable, "SPECIALIST_UNAVAILABLE",
                   absl::StrCat(wanted, ": no healthy one is registered (registered: ",
                                others.empty() ? std::string("none") : absl::StrJoin(others, ", "),
                                "); start it with this coordinator as its registry"));
}

absl::StatusOr<Endpoint> Registry::Find(absl::string_view name, absl::string_view instance) const {
  absl::MutexLock lock(&mutex_);
  return FindLocked(name, instance);
}

absl::StatusOr<Endpoint> Registry::WaitFor(absl::string_view name, absl::string_view instance,
                                           absl::Time deadline, const std::stop_token& stop) const {
  std::stop_callback wake(stop, [this] {
    absl::MutexLock lock(&mutex_);
    changed_.SignalAll();
  });
  absl::MutexLock lock(&mutex_);
  while (true) {
    absl::StatusOr<Endpoint> found = FindLocked(name, instance);
    if (found.ok() || stop.stop_requested()) return found;
    if (changed_.WaitWithDeadline(&mutex_, deadline)) return FindLocked(name, instance);
  }
}

std::vector<Endpoint> Registry::FindAll(absl::string_view instance) const {
  absl::MutexLock lock(&mutex_);
  std::vector<Endpoint> out;
  for (const auto& [id, entry] : entries_) {
    if (!Healthy(entry)) continue;
    if (instance.empty() || instance == entry.endpoint.description.instance_id()) {
      out.push_back(entry.endpoint);
    }
  }
  return out;
}

std::unique_ptr<Registry::Running> Registry::CountRunning(const std::string& instance) {
  return std::make_unique<Running>(*this, instance);
}

Registry::Running::Running(Registry& registry, std::string instance)
    : registry_(registry), instance_(std::move(instance)) {
  absl::MutexLock lock(&registry_.mutex_);
  ++registry_.dispatched_[instance_];
}

Registry::Running::~Running() {
  absl::MutexLock lock(&registry_.mutex_);
  const auto it = registry_.dispatched_.find(instance_);
  if (--it->second == 0) registry_.dispatched_.erase(it);
}

}  // namespace solward::delegation
