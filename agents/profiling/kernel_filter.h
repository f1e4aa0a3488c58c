// The kernels and devices that the constraints of a delegation leave.
#ifndef SOLWARD_AGENTS_PROFILING_KERNEL_FILTER_H_
#define SOLWARD_AGENTS_PROFILING_KERNEL_FILTER_H_

#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "solward/v1/delegation.pb.h"

namespace solward::profiling {

class KernelFilter {
 public:
  // INVALID_ARGUMENT when the pattern is no RE2 expression.
  static absl::StatusOr<KernelFilter> Make(const v1::Constraints& constraints) {
    KernelFilter filter;
    filter.constraints_ = constraints;
    if (constraints.kernel_pattern().empty()) return filter;
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(8 << 20);
    filter.pattern_ = std::make_shared<const RE2>(constraints.kernel_pattern(), options);
    if (filter.pattern_->ok()) return filter;
    return MakeBadRequest("KERNEL_PATTERN_INVALID",
                          "constraints.kernel_pattern is no regular expression",
                          {{"delegation.constraints.kernel_pattern",
                            absl::StrCat("expected an RE2 pattern: ", filter.pattern_->error())}});
  }

  // Whether the pattern is found anywhere in the name; no pattern finds all.
  bool Wants(const std::string& kernel) const {
    return pattern_ == nullptr || RE2::PartialMatch(kernel, *pattern_);
  }
  bool Wants(int32_t device) const {
    const auto& devices = constraints_.devices();
    return devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
  }

 private:
  v1::Constraints constraints_;
  std::shared_ptr<const RE2> pattern_;
};

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_KERNEL_FILTER_H_
