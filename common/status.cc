#include "common/status.h"

#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace solward {
namespace {

constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kBadRequestUrl = "type.googleapis.com/google.rpc.BadRequest";

template <typename Message>
bool ReadPayload(const absl::Status& status, absl::string_view url, Message& message) {
  auto payload = status.GetPayload(url);
  return payload.has_value() && message.ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message) {
  absl::Status status(code, message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("solward");
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status MakeBadRequest(absl::string_view reason, absl::string_view message,
                            const std::vector<FieldViolation>& violations) {
  absl::Status status = MakeError(absl::StatusCode::kInvalidArgument, reason, message);
  google::rpc::BadRequest bad;
  for (const FieldViolation& v : violations) {
    auto* violation = bad.add_field_violations();
    violation->set_field(v.field);
    violation->set_description(v.description);
  }
  status.SetPayload(kBadRequestUrl, absl::Cord(bad.SerializeAsString()));
  return status;
}

std::string ErrorReason(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  return ReadPayload(status, kErrorInfoUrl, info) ? info.reason() : std::string();
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> out;
  google::rpc::BadRequest bad;
  if (!ReadPayload(status, kBadRequestUrl, bad)) return out;
  for (const auto& v : bad.field_violations()) out.push_back({v.field(), v.description()});
  return out;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status out(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(std::string(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    auto* any = wire.add_details();
    any->set_type_url(std::string(url));
    any->set_value(std::string(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      wire.details_size() > 0 ? wire.SerializeAsString() : std::string());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status out(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status wire;
  if (!status.error_details().empty() && wire.ParseFromString(status.error_details())) {
    for (const auto& any : wire.details()) out.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return out;
}

}  // namespace solward
