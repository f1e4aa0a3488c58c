// What the ncu CSV reader and the detection by content share.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_NCU_CSV_H_
#define SOLWARD_AGENTS_PROFILING_READERS_NCU_CSV_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace solward::readers {

enum class NcuPage { kNone, kRaw, kDetails, kSummary };

// Which page of ncu a CSV header line belongs to; kNone for any other line.
NcuPage NcuPageOfHeader(const std::vector<std::string>& header);

// Offset of the first line that is a header of ncu's CSV; npos when there is
// none. Lines before it are the program's output and ncu's own messages.
size_t FindNcuHeader(absl::string_view text);

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_NCU_CSV_H_
