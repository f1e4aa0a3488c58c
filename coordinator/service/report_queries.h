// Questions about a finished analysis: its kernels in pages, and where a number
// comes from.
#ifndef SOLWARD_COORDINATOR_SERVICE_REPORT_QUERIES_H_
#define SOLWARD_COORDINATOR_SERVICE_REPORT_QUERIES_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/metric_catalogue.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// Kernels by total time, longest first, with the metrics they refer to and
// those these are derived from. `page_token` continues a page before.
absl::StatusOr<v1::ListKernelsResponse> ListKernelsPage(const v1::Measurement& measurement,
                                                        const v1::ListKernelsRequest& request);

// `metric` is a key of the report ("m12") or a catalogue id (then the first of
// that id, a wanted one before others). NOT_FOUND (METRIC_NOT_FOUND) otherwise.
absl::StatusOr<v1::ExplainMetricResponse> ExplainMetric(const v1::Report& report,
                                                        const std::string& metric,
                                                        const MetricCatalogue& catalogue);

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_REPORT_QUERIES_H_
