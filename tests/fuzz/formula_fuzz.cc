// Any text is a number or a status.
#include <cmath>
#include <cstdlib>

#include "common/metric_catalogue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  auto value = solward::EvaluateFormula(text, {{"a", 1.5}, {"b", -2.0}});
  if (value.ok() && !std::isfinite(*value)) std::abort();
  return 0;
}
