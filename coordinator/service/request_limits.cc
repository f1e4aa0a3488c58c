#include "coordinator/service/request_limits.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::service {
namespace {

constexpr size_t kMaxStatement = 16 << 10;
constexpr size_t kMaxNotes = 4 << 10;
constexpr size_t kMaxDescription = 4 << 10;
constexpr size_t kMaxSnippet = 256 << 10;
constexpr size_t kMaxCommandBytes = 128 << 10;
constexpr size_t kMaxArguments = 1024;
constexpr size_t kMaxEnvironment = 256;
constexpr size_t kMaxCaptures = 64;
constexpr size_t kMaxMetrics = 256;
constexpr size_t kMaxOperations = 64;
constexpr size_t kMaxDimensions = 32;
constexpr size_t kMaxName = 1 << 10;
constexpr size_t kMaxDevices = 1024;
constexpr size_t kMaxRanks = 65536;
constexpr size_t kMaxSetup = 64;
constexpr size_t kMaxRequest = 1 << 20;
constexpr size_t kMaxAnswers = 64;
constexpr size_t kMaxAnswerValue = 1 << 10;
constexpr size_t kMaxKey = 128;
constexpr uint64_t kMaxCaptureBytes = uint64_t{64} << 30;

class Checker {
 public:
  void Bytes(const std::string& field, size_t found, size_t limit) {
    if (found <= limit) return;
    violations_.push_back({field, absl::StrCat("at most ", limit, " bytes, found ", found)});
  }
  void Entries(const std::string& field, int found, size_t limit) {
    if (static_cast<size_t>(found) <= limit) return;
    violations_.push_back({field, absl::StrCat("at most ", limit, " entries, found ", found)});
  }
  absl::Status Result() const {
    if (violations_.empty()) return absl::OkStatus();
    return MakeBadRequest("REQUEST_TOO_LARGE",
                          absl::StrCat("the request is larger than allowed: ", violations_[0].field,
                                       ": ", violations_[0].description),
                          violations_);
  }

 private:
  std::vector<FieldViolation> violations_;
};

template <typename Map>
size_t MapBytes(const Map& map) {
  size_t bytes = 0;
  for (const auto& [name, value] : map) bytes += name.size() + value.size();
  return bytes;
}

template <typename Strings>
size_t StringBytes(const Strings& strings) {
  size_t bytes = 0;
  for (const std::string& s : strings) bytes += s.size();
  return bytes;
}

void CheckWorkload(const v1::Workload& workload, Checker& check) {
  const std::string in = "request.workload.";
  check.Bytes(in + "description", workload.description().size(), kMaxDescription);
  const v1::Command& command = workload.command();
  check.Entries(in + "command.argv", command.argv_size(), kMaxArguments);
  check.Bytes(in + "command.argv", StringBytes(command.argv()), kMaxCommandBytes);
  check.Entries(in + "command.environment", command.environment_size(), kMaxEnvironment);
  check.Bytes(in + "command.environment", MapBytes(command.environment()), kMaxCommandBytes);
  const v1::SourceFile& source = workload.source_file();
  check.Entries(in + "source_file.arguments", source.arguments_size(), kMaxArguments);
  check.Bytes(in + "source_file.arguments", StringBytes(source.arguments()), kMaxCommandBytes);
  check.Entries(in + "source_file.environment", source.environment_size(), kMaxEnvironment);
  check.Bytes(in + "source_file.environment", MapBytes(source.environment()), kMaxCommandBytes);
  check.Bytes(in + "snippet.text", workload.snippet().text().size(), kMaxSnippet);
  check.Entries(in + "captures.captures", workload.captures().captures_size(), kMaxCaptures);
  for (int i = 0; i < std::min(workload.captures().captures_size(), int{kMaxCaptures}); ++i) {
    const v1::ArtifactReference& capture = workload.captures().captures(i);
    check.Bytes(absl::StrCat(in, "captures.captures[", i, "]"), capture.ByteSizeLong(), kMaxName);
  }
}

void CheckContext(const v1::ProblemContext& context, Checker& check) {
  check.Entries("request.context.operations", context.operations_size(), kMaxOperations);
  for (int i = 0; i < std::min(context.operations_size(), int{kMaxOperations}); ++i) {
    check.Entries(absl::StrCat("request.context.operations[", i, "].dimensions"),
                  context.operations(i).dimensions_size(), kMaxDimensions);
  }
  check.Bytes("request.context.gpu_name", context.gpu_name().size(), kMaxName);
}

void CheckConstraints(const v1::AnalysisRequest& request, Checker& check) {
  const v1::Constraints& constraints = request.constraints();
  check.Bytes("request.constraints.kernel_pattern", constraints.kernel_pattern().size(), kMaxName);
  check.Entries("request.constraints.devices", constraints.devices_size(), kMaxDevices);
  check.Entries("request.constraints.ranks", constraints.ranks_size(), kMaxRanks);
  check.Bytes("request.region", request.region().ByteSizeLong(), kMaxName);
  check.Entries("request.remote.setup", request.remote().setup_size(), kMaxSetup);
  check.Bytes("request.remote", request.remote().ByteSizeLong(), kMaxCommandBytes);
}

}  // namespace

absl::Status CheckRequestSizes(const v1::AnalysisRequest& request) {
  Checker check;
  check.Bytes("request.statement", request.statement().size(), kMaxStatement);
  check.Bytes("request.notes", request.notes().size(), kMaxNotes);
  CheckWorkload(request.workload(), check);
  CheckContext(request.context(), check);
  CheckConstraints(request, check);
  check.Entries("request.desired_metrics", request.desired_metrics_size(), kMaxMetrics);
  check.Bytes("request", request.ByteSizeLong(), kMaxRequest);
  return check.Result();
}

absl::Status CheckAnswerSizes(const v1::AnswerQuestionsRequest& request) {
  if (request.answers().empty()) {
    return MakeBadRequest("ANSWERS_MISSING", "no answer was given",
                          {{"answers", "1 to 64 answers expected"}});
  }
  Checker check;
  check.Entries("answers", request.answers_size(), kMaxAnswers);
  for (int i = 0; i < std::min(request.answers_size(), int{kMaxAnswers}); ++i) {
    check.Bytes(absl::StrCat("answers[", i, "].value"), request.answers(i).value().size(),
                kMaxAnswerValue);
    check.Bytes(absl::StrCat("answers[", i, "]"), request.answers(i).ByteSizeLong(),
                2 * kMaxAnswerValue);
  }
  return check.Result();
}

absl::Status CheckKey(const std::string& key) {
  const bool printable = std::all_of(
      key.begin(), key.end(), [](unsigned char c) { return absl::ascii_isgraph(c) || c == ' '; });
  if (key.size() <= kMaxKey && printable) return absl::OkStatus();
  return MakeBadRequest(
      "KEY_INVALID", "key: at most 128 printable ASCII characters expected",
      {{"key", absl::StrCat("at most 128 printable ASCII characters, found ", key.size(),
                            printable ? " characters" : " bytes with others among them")}});
}

absl::Status CheckCaptureHeader(const v1::PutCaptureHeader& header) {
  std::vector<FieldViolation> violations;
  if (header.label().size() > 255 || absl::StrContains(header.label(), '/')) {
    violations.push_back(
        {"header.label", "a file name of at most 255 bytes, not a path, expected"});
  }
  if (header.size() > kMaxCaptureBytes) {
    violations.push_back({"header.size", absl::StrCat("at most ", kMaxCaptureBytes,
                                                      " bytes, found ", header.size())});
  }
  const std::string& digest = header.sha256();
  const bool hex = digest.size() == 64 && std::all_of(digest.begin(), digest.end(), [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  if (!hex) violations.push_back({"header.sha256", "64 lower-case hex digits expected"});
  if (violations.empty()) return absl::OkStatus();
  return MakeBadRequest("CAPTURE_HEADER_INVALID", "the capture's header cannot be used",
                        violations);
}

}  // namespace solward::service
