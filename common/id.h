// Random identifiers.
#ifndef SOLWARD_COMMON_ID_H_
#define SOLWARD_COMMON_ID_H_

#include <string>

#include "absl/strings/string_view.h"

namespace solward {

// "<prefix>-" and 26 characters of Crockford base 32 (a ULID: 48 bits of
// milliseconds, 80 random bits), so that ids sort by time.
std::string NewId(absl::string_view prefix);

}  // namespace solward

#endif  // SOLWARD_COMMON_ID_H_
