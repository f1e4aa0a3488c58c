// Numbers with units: reading them from text and printing them. Units inside
// Solward are UCUM-style base units: ns, By, By/s, {FLOP}, {FLOP}/s, Hz, %, 1.
#ifndef SOLWARD_COMMON_UNITS_H_
#define SOLWARD_COMMON_UNITS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward {

enum class Language { kEnglish, kFrench };

struct UnitScale {
  std::string unit;     // base unit here
  double scale = 1;     // value in base unit = printed * scale
};

// What a tool or a person writes as a unit ("us", "µs", "Gbyte/s", "TFLOP/s",
// "Ghz", "MiB", "cycle/nsecond", "GFLOP") to base units. A unit that is none of
// these families is kept as it is with scale 1.
UnitScale ToBaseUnit(absl::string_view printed);

// "1,205.00", "68,72", "1 247", "-3e5" to a number. `decimal_comma` says that
// a comma is the decimal separator. INVALID_ARGUMENT names the text.
absl::StatusOr<double> ParseNumber(absl::string_view text, bool decimal_comma = false);

// Parses "24 ms", "68.72GFLOP", "0.5s"; the unit must belong to the family of
// `base_unit`; without a unit the number is taken in `default_unit`.
absl::StatusOr<double> ParseQuantity(absl::string_view text, absl::string_view base_unit,
                                     absl::string_view default_unit);

// Prints with `decimals` digits after the point; `si`: scaled to the largest
// prefix that leaves at least 1 (ns, us -> "µs", ms, s; k, M, G, T, P).
// English: "3.40 TB/s", "2,045 kernels", "69.2 %". French: "3,40 To/s",
// "2 045 kernels" (narrow no-break space), "69,2 %".
std::string FormatQuantity(double value, absl::string_view unit, bool si, int decimals,
                           Language language);

}  // namespace solward

#endif  // SOLWARD_COMMON_UNITS_H_
