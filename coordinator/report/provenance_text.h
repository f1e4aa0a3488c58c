// Where a number comes from, in words.
#ifndef SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_
#define SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/report/text_writer.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

class ProvenanceText {
 public:
  // References outlive this.
  ProvenanceText(const v1::Report& report, TextWriter& writer);

  // For a table cell: tool and capture, "derived", "given by the client", ...
  std::string Short(const v1::Metric& metric) const;

  // Everything: "`ncu 2025.3.1, bmm.ncu.raw.csv, sm__throughput…, rows 0–2, mean of 3`".
  absl::StatusOr<std::string> Long(const v1::Metric& metric) const;

  // One line per cited metric and per input it was derived from; sums that were
  // made two at a time are shown as one, and uncited rows of one table as one line.
  absl::StatusOr<std::string> Legend() const;

  // "kernel `x`, `GPU 0 rank 1`"; the device is left out where the whole report
  // speaks of one.
  std::string ScopeText(const v1::Scope& scope) const;

  // "`GPU 0 rank 1`"; empty where the whole report speaks of one place.
  std::string PlaceText(const v1::Scope& scope) const;

 private:
  std::string LabelOf(absl::string_view artifact_id) const;
  std::string MeasuredText(const v1::Measured& measured) const;
  absl::StatusOr<std::string> DerivedText(const v1::Derived& derived) const;
  std::string ReferenceText(const v1::Reference& reference) const;
  bool IsSum(const v1::Metric& metric) const;
  // Terms of a sum made two at a time, in order.
  absl::StatusOr<std::vector<std::string>> TermsOfSum(const v1::Metric& metric) const;
  absl::StatusOr<std::vector<const v1::Metric*>> MetricsToExplain() const;

  TextWriter& writer_;
  std::map<std::string, std::string, std::less<>> labels_;
  bool several_places_ = false;
};

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_
