// Turns the parts of a report into words of one language: values with their
// keys, names as code, terms, quotations, whole statements. Remembers which
// metrics were cited, so that a legend can explain exactly those.
#ifndef SOLWARD_COORDINATOR_REPORT_TEXT_WRITER_H_
#define SOLWARD_COORDINATOR_REPORT_TEXT_WRITER_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metric_catalogue.h"
#include "coordinator/report/messages.h"
#include "solward/v1/metric.pb.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

// `text` as a Markdown code span on one line, whatever it holds.
std::string CodeSpan(absl::string_view text);

// Function name without return type, namespaces and parameters; of its template
// arguments only what the kernel was instantiated for: "elementwise_kernel<MulFunctor>".
std::string ShortKernelName(absl::string_view name);

// References outlive the writer. Not thread-safe.
class TextWriter {
 public:
  TextWriter(const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
             const MetricCatalogue& catalogue, const Messages& messages, Language language);

  // INTERNAL when no metric has this key.
  absl::StatusOr<const v1::Metric*> Find(absl::string_view key) const;

  // "69.2 % [m3]"; the key counts as cited.
  absl::StatusOr<std::string> Value(absl::string_view key);
  std::string Value(const v1::Metric& metric);

  // A metric's name in the catalogue; as code when it holds a digit.
  std::string MetricName(absl::string_view id) const;

  // Term of what a share is a share of: "base.window", "base.step", "base.kernels".
  std::string BaseTerm(const v1::Metric& share) const;

  // A text of the table without placeholders. INTERNAL when there is none.
  absl::StatusOr<std::string> Term(absl::string_view id) const;
  // For ids of this program itself: the id in code when it is unknown.
  std::string Label(absl::string_view id) const;

  // ": " or " : ".
  absl::string_view Colon() const;

  // “`text`”: verbatim words of someone else, inert in Markdown.
  std::string Quotation(absl::string_view text) const;

  // INTERNAL (REPORT_MESSAGE_UNKNOWN, REPORT_ARGUMENT_MISSING, ...) names the
  // message and what is wrong.
  absl::StatusOr<std::string> Sentence(const v1::Statement& statement);

  // The name under which kernel tables and statements show a kernel.
  std::string KernelName(absl::string_view name) const;
  // Kernels get short names that stay distinct; call before any text is made.
  void ShortenKernelNames(const std::set<std::string>& names);
  // Short name -> full name of those shortened.
  const std::map<std::string, std::string>& shortened() const { return full_names_; }

  const std::set<std::string>& cited() const { return cited_; }
  Language language() const { return language_; }
  const MetricCatalogue& catalogue() const { return catalogue_; }

 private:
  absl::StatusOr<std::string> Argument(const v1::StatementArgument& argument);

  const MetricCatalogue& catalogue_;
  const Messages& messages_;
  const Language language_;
  std::map<std::string, const v1::Metric*, std::less<>> by_key_;
  std::map<std::string, std::string, std::less<>> short_names_;
  std::map<std::string, std::string> full_names_;
  std::set<std::string> cited_;
};

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_TEXT_WRITER_H_
