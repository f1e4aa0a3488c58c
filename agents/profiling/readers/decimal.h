// Numbers of text formats as exact integers of a smaller unit.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_DECIMAL_H_
#define SOLWARD_AGENTS_PROFILING_READERS_DECIMAL_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace solward::readers {

// A JSON token without the white space behind it and, when it is a string,
// without its quotes.
absl::string_view Unquoted(absl::string_view token);

// `text` times 10^`digits` as an integer, rounded half away from zero; exact
// where a double is not: ("5217457449772.717", 3) -> 5217457449772717. An
// exponent is understood. Nothing when the text is no finite number or the
// result does not fit.
std::optional<int64_t> DecimalToInteger(absl::string_view text, int digits);

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_DECIMAL_H_
