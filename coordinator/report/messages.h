// The sentences of a report: message id -> English and French text with named
// {placeholders}. No text holds a number; numbers enter only as metrics.
//
//   const Message* m = BuiltInMessages().Find("summary.no_throughput");
#ifndef SOLWARD_COORDINATOR_REPORT_MESSAGES_H_
#define SOLWARD_COORDINATOR_REPORT_MESSAGES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/units.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

struct Message {
  std::string en, fr;
  std::set<std::string, std::less<>> placeholders;  // the same in both languages

  const std::string& In(Language language) const { return language == Language::kFrench ? fr : en; }
};

// Immutable once built; safe to share between threads.
class Messages {
 public:
  // Parses a file of the form of config/messages.yaml. INVALID_ARGUMENT names
  // the message when a language is missing or empty, the placeholders differ
  // between the languages, or a digit stands outside a `code span`.
  static absl::StatusOr<Messages> Parse(absl::string_view yaml);

  // Adds one message with the same checks; ALREADY_EXISTS when the id is taken.
  absl::Status Add(absl::string_view id, absl::string_view en, absl::string_view fr);

  // nullptr when unknown; valid while the table lives.
  const Message* Find(absl::string_view id) const;

  const std::map<std::string, Message, std::less<>>& all() const { return messages_; }

 private:
  std::map<std::string, Message, std::less<>> messages_;
};

// config/messages.yaml and the texts of config/recommendations.yaml (ids
// "recommendation.<id>.action", ".check", ".verify") of the build.
const Messages& BuiltInMessages();

// Message id of an enum's value: EnumTerm("severity", "SEVERITY_", "SEVERITY_INFO")
// is "severity.info".
std::string EnumTerm(absl::string_view group, absl::string_view prefix, absl::string_view name);

// "class.launch_overhead".
std::string ClassTerm(v1::BottleneckClass bottleneck_class);

// A text cut at its placeholders, in order.
struct TextPart {
  std::string text;  // literal, or the placeholder's name
  bool is_placeholder = false;
};
std::vector<TextPart> SplitText(absl::string_view text);

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_MESSAGES_H_
