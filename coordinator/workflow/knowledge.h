// What every stage may look up. Nothing in it knows a profiler.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_KNOWLEDGE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_KNOWLEDGE_H_

#include "common/classification_parameters.h"
#include "common/gpu_peaks.h"
#include "common/metric_catalogue.h"

namespace solward::workflow {

// References outlive every stage.
struct Knowledge {
  const MetricCatalogue& catalogue;
  const GpuPeaks& peaks;
  const ClassificationParameters& parameters;
};

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_KNOWLEDGE_H_
