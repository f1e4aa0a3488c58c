// Dense peaks per GPU (config/gpu_peaks.yaml). Never a sparse figure, never a
// near match: a device is matched by name, compute capability, SM count and
// memory size as it reports them, through an alias list.
#ifndef SOLWARD_COMMON_GPU_PEAKS_H_
#define SOLWARD_COMMON_GPU_PEAKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "solward/v1/delegation.pb.h"

namespace solward {

struct GpuPeak {
  std::string name;                  // row name: "H200-SXM"
  std::vector<std::string> aliases;  // names devices report: "NVIDIA H200"
  std::string compute_capability;    // "9.0"
  uint32_t sm_count = 0;             // 0: boards differ, not checked
  // Printed sizes of the part, GiB; several when it is sold with several.
  std::vector<double> memory_gib;
  std::optional<double> boost_hz, tensor_hz;
  // FLOP/s (int8: OP/s), dense.
  std::optional<double> fp64, fp64_tc, fp32, tf32, fp16, bf16, fp8, fp4, int8;
  std::optional<double> dram_bytes_per_second;
  std::optional<double> nvlink_bytes_per_second;  // both directions together
  std::string confidence, source, notes;

  // Dense peak of a dtype on the unit a framework uses for it (FP32: not the
  // tensor cores; FP64: the tensor cores where there are any); nullopt when
  // the part has none or the table no figure.
  std::optional<double> PeakOf(v1::Dtype dtype) const;
  // Column of config/gpu_peaks.yaml that PeakOf reads: "fp16_tc"; empty for
  // UNSPECIFIED.
  absl::string_view ColumnOf(v1::Dtype dtype) const;

  // Whether a device of this row may report so many bytes: drivers and ECC keep
  // up to a tenth of the printed size for themselves.
  bool MemoryFits(double bytes) const;
};

// Immutable after Parse; thread-safe.
class GpuPeaks {
 public:
  static absl::StatusOr<GpuPeaks> Parse(absl::string_view yaml);

  // The row whose alias is exactly the device's name and whose compute
  // capability, SM count and memory size agree. A property the capture does not
  // tell (0) is not checked, but at least one must be told. NOT_FOUND (reason
  // PEAK_UNKNOWN, "no peak known for ...") with a hint at the configuration when
  // no row fits; the message says which property did not.
  absl::StatusOr<const GpuPeak*> Match(const v1::Gpu& gpu) const;
  const std::vector<GpuPeak>& rows() const { return rows_; }

 private:
  std::vector<GpuPeak> rows_;
};

const GpuPeaks& BuiltInGpuPeaks();

// "fp16", "float16", "half", "torch.bfloat16", "e4m3", ... in any case;
// UNSPECIFIED when unknown.
v1::Dtype ParseDtype(absl::string_view text);
absl::string_view DtypeName(v1::Dtype dtype);  // "fp16"

}  // namespace solward

#endif  // SOLWARD_COMMON_GPU_PEAKS_H_
