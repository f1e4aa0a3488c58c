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
  std::string unit;  // base unit here
  double scale = 1;  // value in base unit = printed * scale
};

// What a tool or a person writes as a unit to base units. Families:
//   time       ns us µs ms s min, nsecond usecond msecond second (ncu)     -> ns
//   frequency  Hz kHz MHz GHz in any case, cycle/second, cycle/nsecond      -> Hz
//   bytes      byte Kbyte Mbyte Gbyte Tbyte (ncu), B kB MB GB TB PB,
//              o ko Mo Go To Po (octets): powers of 1000;
//              KiB MiB GiB TiB, Kio Mio Gio Tio: powers of 1024             -> By
//   bandwidth  bytes over a time ("Gbyte/s", "MiB/s", "byte/nsecond")       -> By/s
//   FLOP       FLOP FLOPs with k M G T P E                                  -> {FLOP}
//   FLOP rate  FLOP/s, FLOPs/s, FLOPS (capital S)                           -> {FLOP}/s
//   others     W mW kW -> W; C °C degC -> Cel; % -> %; "" -> 1
// Any other unit ("inst/cycle", "Kbyte/block") is kept as it is with scale 1.
UnitScale ToBaseUnit(absl::string_view printed);

// "1,205.00", "68,72", "1 247", "-3e5" to a number. `decimal_comma`: a comma is
// the decimal separator and thousands are separated by spaces (also no-break
// ones); a point is then decimal as well unless a comma follows it. Otherwise a
// comma separates thousands, in groups of exactly three digits.
// INVALID_ARGUMENT names the text.
absl::StatusOr<double> ParseNumber(absl::string_view text, bool decimal_comma = false);

// Parses "24 ms", "68.72GFLOP", "68,72 GFLOP", "0.5s", "32 samples" to the base
// unit; the unit must belong to the family of `base_unit`; without a unit the
// number is taken in `default_unit`. A comma separates thousands where it can
// ("1,205"), else decimals. "GFLOPS" is taken as an amount where one is wanted.
// A count ("{parameter}") takes k, M, B or G, T for its thousands: "7B".
absl::StatusOr<double> ParseQuantity(absl::string_view text, absl::string_view base_unit,
                                     absl::string_view default_unit);

// Prints a number with its unit. The rule, exactly (a script can follow it):
//
// 1. Prefix. With `si`, ns becomes the largest of ns, µs (1e3), ms (1e6), s (1e9)
//    that leaves |value| / scale >= 1, else ns; any other unit but %, 1 and Cel
//    takes the largest of k (1e3), M, G, T, P (1e15) likewise, else none. When
//    the scaled number rounded to `decimals` is 1000 or more and a larger prefix
//    exists, that one is taken. Without `si` the value stays as it is.
// 2. Digits. printf("%.<decimals>f") of value / scale (an IEEE division; halves
//    round to even of the exact binary value, as Python's format does). A
//    negative zero loses its sign. From four digits before the point on,
//    thousands are separated by "," (French: U+202F); the point is "." (French ",").
// 3. Unit, after one space; none for "1":
//      By -> B (French o), By/s -> B/s (o/s), {FLOP} -> FLOP, {FLOP}/s -> FLOP/s,
//      {FLOP}/By -> FLOP/B (FLOP/o), Cel -> °C; Hz, W, % and others as they are;
//      the prefix stands directly before them. Another {word} becomes its word
//      (common/unit_words.h; an unlisted one itself, plural with s), in the plural
//      unless the printed number is 1 (French: below 2), a prefix as "G words";
//      what follows the brace stays: "{step}/s" -> "steps/s".
//
// English: "3.40 TB/s", "2,045 kernels", "69.2 %", "100.4 µs". French:
// "3,40 To/s", "2 045 noyaux", "69,2 %", "100,4 µs". "?" for a value that is
// not finite (a Metric never is).
std::string FormatQuantity(double value, absl::string_view unit, bool si, int decimals,
                           Language language);

}  // namespace solward

#endif  // SOLWARD_COMMON_UNITS_H_
