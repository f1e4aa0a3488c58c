// For tests: is every number of a rendered report the value of a metric?
#ifndef SOLWARD_COORDINATOR_REPORT_NUMBER_CHECK_H_
#define SOLWARD_COORDINATOR_REPORT_NUMBER_CHECK_H_

#include <string>
#include <vector>

#include "common/metric_catalogue.h"
#include "common/units.h"
#include "solward/v1/report.pb.h"

namespace solward::report {

// What is left of a Markdown report that is no metric of it: lines with a digit
// that stands neither in code, nor in a key, nor in "<value as the catalogue
// prints it> [<key>]", nor in the number of a list item. Empty when all is well.
std::vector<std::string> NumbersWithoutMetric(const std::string& markdown, const v1::Report& report,
                                              const MetricCatalogue& catalogue, Language language);

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_NUMBER_CHECK_H_
