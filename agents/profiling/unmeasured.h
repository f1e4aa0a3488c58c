// Why a wanted metric is not in a result, and what would bring it.
#ifndef SOLWARD_AGENTS_PROFILING_UNMEASURED_H_
#define SOLWARD_AGENTS_PROFILING_UNMEASURED_H_

#include <string>
#include <vector>

#include "agents/profiling/result_builder.h"
#include "solward/v1/delegation.pb.h"

namespace solward::profiling {

// What the captures of a delegation turned out to be.
struct CapturesSeen {
  bool raw_counters = false;      // ncu, raw page
  bool printed_counters = false;  // ncu, details page
  bool timeline = false;
  bool device_samples = false;  // nvidia-smi
  bool unreadable = false;      // at least one capture gave nothing
};

// Catalogue ids that the profiling specialist can measure.
std::vector<std::string> MeasurableMetrics();

// Adds an UnmeasuredMetric for each wanted id that this specialist could
// measure and did not; ids that others derive are not its business. Nothing
// wanted: the catalogue's default set.
void AddUnmeasuredMetrics(const v1::DelegationRequest& request, const CapturesSeen& seen,
                          ResultBuilder* builder);

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_UNMEASURED_H_
