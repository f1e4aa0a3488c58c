// What both nvidia-smi readers share: values with units, and which fields name
// a device.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_SMI_VALUES_H_
#define SOLWARD_AGENTS_PROFILING_READERS_SMI_VALUES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/statistics.h"

namespace solward::readers {

// Puts one printed value ("78.39 W", "0 %", "[N/A]", "P0") into the sample: as
// a number in base units, as a text, or counted and left out. `unit` is used
// for a number that brings none ("0" below "utilization.gpu [%]").
void AddSmiValue(absl::string_view field, absl::string_view printed, absl::string_view unit,
                 SmiSample* sample, Statistics* statistics);

// Text of the first of `fields` that the sample has; empty when it has none.
std::string SmiText(const SmiSample& sample, std::initializer_list<absl::string_view> fields);
// Value of the first of `fields` that the sample has; 0 when it has none or
// when it is not within [0, most].
double SmiNumber(const SmiSample& sample, std::initializer_list<absl::string_view> fields,
                 double most);

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_SMI_VALUES_H_
