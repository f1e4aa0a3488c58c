// The files of config/ as compiled into the program.
#ifndef SOLWARD_COMMON_EMBEDDED_CONFIG_H_
#define SOLWARD_COMMON_EMBEDDED_CONFIG_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward {

// Text of "metrics.yaml", "gpu_peaks.yaml", ... NOT_FOUND names the file.
absl::StatusOr<absl::string_view> EmbeddedConfig(absl::string_view name);

namespace internal {
struct EmbeddedFile {
  const char* name;
  const char* text;
  size_t size;
};
extern const EmbeddedFile kEmbeddedFiles[];
extern const size_t kEmbeddedFileCount;
}  // namespace internal

}  // namespace solward

#endif  // SOLWARD_COMMON_EMBEDDED_CONFIG_H_
