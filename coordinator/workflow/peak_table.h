// Printed peaks of the GPUs of a measurement, as metrics.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_PEAK_TABLE_H_
#define SOLWARD_COORDINATOR_WORKFLOW_PEAK_TABLE_H_

#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/workflow/measure_draft.h"

namespace solward::workflow {

// Peaks of one GPU. A metric is nullptr when the table has no figure.
struct DevicePeaks {
  v1::Gpu gpu;
  const GpuPeak* row = nullptr;
  const Metric* flops = nullptr;      // of the wanted dtype
  const Metric* bandwidth = nullptr;  // DRAM
  const Metric* clock = nullptr;      // at which `flops` holds
  const Metric* limit = nullptr;      // highest MFU the chip can reach, percent
  // Why there is no `flops` (and perhaps nothing else); empty when there is.
  std::string missing;
};

class PeakTable {
 public:
  // Adds a Reference metric for each figure of each GPU that the captures, or
  // without any the client, name. `dtype` UNSPECIFIED: no compute peak.
  static absl::StatusOr<PeakTable> Make(v1::Dtype dtype, MeasureDraft& draft);

  // Peaks of the device of a capture; of the device when the capture named
  // none; of the only GPU for device -1. nullptr when no GPU is known.
  const DevicePeaks* Find(int device, absl::string_view artifact_id) const;

 private:
  std::deque<DevicePeaks> devices_;
};

// Dtype of the context, else of its first operation that has one.
v1::Dtype ContextDtype(const v1::ProblemContext& context);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_PEAK_TABLE_H_
