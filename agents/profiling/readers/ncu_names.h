// Printed names of ncu's details page and the raw metrics they mean
// (config/ncu_details_names.yaml).
#ifndef SOLWARD_AGENTS_PROFILING_READERS_NCU_NAMES_H_
#define SOLWARD_AGENTS_PROFILING_READERS_NCU_NAMES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward::readers {

// Immutable after Parse; thread-safe.
class NcuNames {
 public:
  // INVALID_ARGUMENT names the entry and what is wrong with it.
  static absl::StatusOr<NcuNames> Parse(absl::string_view yaml);

  // Raw name of "<Section Name>/<Metric Name>"; empty when unknown.
  absl::string_view RawName(absl::string_view printed) const;
  const std::map<std::string, std::string, std::less<>>& raw_by_printed() const { return raw_; }

 private:
  std::map<std::string, std::string, std::less<>> raw_;
};

// The table compiled into the program.
const NcuNames& BuiltInNcuNames();

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_NCU_NAMES_H_
