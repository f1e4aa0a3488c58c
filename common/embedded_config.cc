#include "common/embedded_config.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward {

absl::StatusOr<absl::string_view> EmbeddedConfig(absl::string_view name) {
  for (size_t i = 0; i < internal::kEmbeddedFileCount; ++i) {
    const internal::EmbeddedFile& file = internal::kEmbeddedFiles[i];
    if (name == file.name) return absl::string_view(file.text, file.size);
  }
  return MakeError(absl::StatusCode::kNotFound, "EMBEDDED_CONFIG_UNKNOWN",
                   absl::StrCat("config/", name, ": not compiled into this program"));
}

}  // namespace solward
