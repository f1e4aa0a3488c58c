// Renderings of a report. They add no fact: every number printed is a metric
// of the report, followed by its key ("69.2 % [m3]"); words come from
// config/messages.yaml in English and French.
#ifndef SOLWARD_COORDINATOR_REPORT_RENDER_H_
#define SOLWARD_COORDINATOR_REPORT_RENDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/metric_catalogue.h"
#include "common/units.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

// Sections are exactly "## Summary", "## Metrics", "## Findings",
// "## Recommendations", or "## Résumé", "## Métriques", "## Findings",
// "## Recommandations".
absl::StatusOr<std::string> RenderMarkdown(const v1::Report& report,
                                           const MetricCatalogue& catalogue, Language language);

// The proto's JSON form, indented, field names as in the proto.
absl::StatusOr<std::string> RenderJson(const v1::Report& report);

// One statement as plain text, for progress lines and questions.
std::string RenderStatement(const v1::Statement& statement,
                            const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
                            const MetricCatalogue& catalogue, Language language);

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_RENDER_H_
