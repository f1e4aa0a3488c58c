#include "agents/runtime/request_checks.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agents/runtime/workspace.h"
#include "common/outcome_lint.h"
#include "common/status.h"

namespace solward::runtime {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Caps that hold for every field without one of its own, whatever the proto
// gains later.
constexpr int kMaxEntries = 256;
constexpr size_t kMaxTextBytes = 4 << 10;
constexpr size_t kMaxViolations = 16;

// By full name of the field: bytes of a text.
size_t TextCap(const FieldDescriptor& field) {
  static const auto& caps = *new std::map<std::string, size_t>{
      {"solward.v1.DelegationRequest.key", kMaxKeyBytes},
      {"solward.v1.DelegationRequest.statement", 16 << 10},
      {"solward.v1.GivenNumber.text", 16 << 10},
      {"solward.v1.Operation.text", 16 << 10},
      {"solward.v1.Workload.description", 4 << 10},
      {"solward.v1.Snippet.text", 256 << 10},
      {"solward.v1.Command.argv", 128 << 10},
      {"solward.v1.SourceFile.arguments", 128 << 10},
      {"solward.v1.ArtifactReference.label", kMaxLabelBytes},
      {"solward.v1.Constraints.kernel_pattern", 1 << 10},
  };
  const auto found = caps.find(field.full_name());
  return found == caps.end() ? kMaxTextBytes : found->second;
}

// Entries of a repeated field or map.
int EntryCap(const FieldDescriptor& field) {
  static const auto& caps = *new std::map<std::string, int>{
      {"solward.v1.DelegationRequest.evidence", 10'000},
      {"solward.v1.Command.argv", 4'096},
      {"solward.v1.SourceFile.arguments", 4'096},
      {"solward.v1.RowSelection.ranges", 10'000},
  };
  const auto found = caps.find(field.full_name());
  return found == caps.end() ? kMaxEntries : found->second;
}

// Walks every field that is set, so that a field cannot be forgotten.
class FieldWalker {
 public:
  void Walk(const Message& message, const std::string& path) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (violations_.size() >= kMaxViolations) return;
      const std::string name = absl::StrCat(path, ".", field->name());
      if (!field->is_repeated()) {
        CheckOne(message, *field, -1, name);
        continue;
      }
      const int size = reflection.FieldSize(message, field);
      if (size > EntryCap(*field)) {
        Add(name, absl::StrCat(size, " entries, at most ", EntryCap(*field), " are taken"));
        continue;
      }
      for (int i = 0; i < size; ++i) CheckOne(message, *field, i, absl::StrCat(name, "[", i, "]"));
    }
  }

  void Add(const std::string& field, const std::string& what) {
    if (violations_.size() < kMaxViolations) violations_.push_back({field, what});
  }

  absl::Status Result() const {
    if (violations_.empty()) return absl::OkStatus();
    std::string message = "the request cannot be taken: ";
    for (const FieldViolation& violation : violations_) {
      absl::StrAppend(&message, &violation == violations_.data() ? "" : "; ", violation.field, ": ",
                      violation.description);
    }
    return MakeBadRequest("REQUEST_FIELD", message, violations_);
  }

 private:
  void CheckOne(const Message& message, const FieldDescriptor& field, int index,
                const std::string& name) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Walk(index < 0 ? reflection.GetMessage(message, &field)
                       : reflection.GetRepeatedMessage(message, &field, index),
             name);
        break;
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        const std::string& text =
            index < 0 ? reflection.GetStringReference(message, &field, &scratch)
                      : reflection.GetRepeatedStringReference(message, &field, index, &scratch);
        if (text.size() > TextCap(field)) {
          Add(name, absl::StrCat(text.size(), " bytes, at most ", TextCap(field), " are taken"));
        } else if (text.find('\0') != std::string::npos) {
          Add(name, "a zero byte");
        }
        break;
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const double value = index < 0 ? reflection.GetDouble(message, &field)
                                       : reflection.GetRepeatedDouble(message, &field, index);
        if (!std::isfinite(value)) Add(name, "not a finite number");
        break;
      }
      default:
        break;
    }
  }

  std::vector<FieldViolation> violations_;
};

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

absl::Status CheckDelegationRequest(const v1::DelegationRequest& request) {
  FieldWalker walker;
  if (request.key().empty()) {
    walker.Add("delegation.key", "missing; expected 1 to 128 characters chosen by the caller");
  }
  if (request.workload().what_case() == v1::Workload::WHAT_NOT_SET) {
    walker.Add("delegation.workload",
               "missing; expected a command, a source file, a snippet or captures");
  }
  if (request.workload().has_captures() && request.workload().captures().captures().empty()) {
    walker.Add("delegation.workload.captures", "empty; expected at least one capture");
  }
  walker.Walk(request, "delegation");
  RETURN_IF_ERROR(walker.Result());
  return LintFields({{"delegation.statement", request.statement()},
                     {"delegation.workload.description", request.workload().description()}});
}

absl::Status CheckCaptureHeader(const v1::PutCaptureHeader& header, uint64_t max_bytes) {
  FieldWalker walker;
  const std::string& label = header.label();
  if (label.empty() || label.size() > kMaxLabelBytes || label.find('/') != std::string::npos ||
      label.find('\0') != std::string::npos) {
    walker.Add("header.label", absl::StrCat("expected a file name of 1 to ", kMaxLabelBytes,
                                            " bytes without any folder"));
  }
  if (!IsSha256(header.sha256())) {
    walker.Add("header.sha256", "expected 64 lower-case hex digits");
  }
  RETURN_IF_ERROR(walker.Result());
  if (header.size() > max_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "ARTIFACT_TOO_LARGE",
                     absl::StrCat(label, " has ", header.size(), " bytes, more than ",
                                  "max_artifact_bytes = ", max_bytes,
                                  "; record a shorter region or raise the limit"));
  }
  return absl::OkStatus();
}

absl::Status CheckRecomputeRequest(const v1::RecomputeRequest& request) {
  FieldWalker walker;
  if (request.metrics_size() > kMaxRecomputeMetrics) {
    walker.Add("metrics", absl::StrCat(request.metrics_size(), " metrics, at most ",
                                       kMaxRecomputeMetrics, " are taken in one call"));
    return walker.Result();
  }
  for (int i = 0; i < request.metrics_size(); ++i) {
    walker.Walk(request.metrics(i), absl::StrCat("metrics[", i, "]"));
  }
  return walker.Result();
}

}  // namespace solward::runtime
