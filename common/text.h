// Small text helpers.
#ifndef SOLWARD_COMMON_TEXT_H_
#define SOLWARD_COMMON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace solward {

// Replaces what is not valid UTF-8 by U+FFFD and control characters other than
// tab and newline by a space; proto strings and reports need it.
std::string CleanUtf8(absl::string_view text);

// At most `max_bytes`, cut at a character border, "…" appended when cut.
std::string Truncate(absl::string_view text, size_t max_bytes);

}  // namespace solward

#endif  // SOLWARD_COMMON_TEXT_H_
