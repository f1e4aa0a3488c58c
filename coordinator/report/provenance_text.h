// Where a number comes from, in words.
#ifndef SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_
#define SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_

#include <map>
#include <string>

#include "coordinator/report/text_writer.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

class ProvenanceText {
 public:
  // References outlive this.
  ProvenanceText(const v1::Report& report, const TextWriter& writer);

  // For a table cell: tool and capture, "derived", "given by the client", ...
  std::string Short(const v1::Metric& metric) const;

  // What several numbers may share: "`<tool and version>, <capture>, <table>`, mean",
  // "derived, `part / window * 100`", "given by the client".
  std::string Source(const v1::Metric& metric) const;

  // What is the number's own beside its source, but for a derived metric's
  // inputs: "`<the tool's name>, rows 0–2, n=3`".
  std::string Detail(const v1::Metric& metric) const;

  // "`x`, `GPU 0 rank 1`"; kernel and device are left out where the whole report
  // speaks of one.
  std::string ScopeText(const v1::Scope& scope) const;

  // "`GPU 0 rank 1`"; empty where the whole report speaks of one place.
  std::string PlaceText(const v1::Scope& scope) const;

 private:
  std::string LabelOf(absl::string_view artifact_id) const;
  std::string MeasuredSource(const v1::Measured& measured) const;
  std::string MeasuredDetail(const v1::Measured& measured) const;

  const TextWriter& writer_;
  std::map<std::string, std::string, std::less<>> labels_;
  bool several_places_ = false;
  bool several_kernels_ = false;
};

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_PROVENANCE_TEXT_H_
