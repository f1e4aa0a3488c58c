// The legend of a report: where each number that it cites comes from.
#ifndef SOLWARD_COORDINATOR_REPORT_LEGEND_H_
#define SOLWARD_COORDINATOR_REPORT_LEGEND_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/report/provenance_text.h"
#include "coordinator/report/text_writer.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

// Markdown list. One line for each metric that `writer` has cited so far and
// for each that those were derived from, under the source they share (a
// capture's table, a formula). Numbers of one kind for several kernels are told
// in one line, and a sum made two at a time is told as one sum.
absl::StatusOr<std::string> WriteLegend(const v1::Report& report, const ProvenanceText& provenance,
                                        TextWriter& writer);

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_LEGEND_H_
