#include "common/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "common/text.h"
#include "common/unit_words.h"

namespace solward {
namespace {

constexpr size_t kMaxNumberLength = 400;

using Scales = std::map<absl::string_view, double>;

// The value of a key, nullopt when there is none.
std::optional<double> Lookup(const Scales& scales, absl::string_view key) {
  const auto found = scales.find(key);
  if (found == scales.end()) return std::nullopt;
  return found->second;
}

// Scale to ns.
std::optional<double> TimeScale(absl::string_view unit) {
  static const Scales scales{{"ns", 1},
                             {"nsec", 1},
                             {"nsecond", 1},
                             {"nanosecond", 1},
                             {"nanoseconds", 1},
                             {"nanoseconde", 1},
                             {"nanosecondes", 1},
                             {"us", 1e3},
                             {"\xC2\xB5s", 1e3},
                             {"\xCE\xBCs", 1e3},
                             {"usec", 1e3},
                             {"usecond", 1e3},
                             {"microsecond", 1e3},
                             {"microseconds", 1e3},
                             {"microseconde", 1e3},
                             {"microsecondes", 1e3},
                             {"ms", 1e6},
                             {"msec", 1e6},
                             {"msecond", 1e6},
                             {"millisecond", 1e6},
                             {"milliseconds", 1e6},
                             {"milliseconde", 1e6},
                             {"millisecondes", 1e6},
                             {"s", 1e9},
                             {"sec", 1e9},
                             {"second", 1e9},
                             {"seconds", 1e9},
                             {"seconde", 1e9},
                             {"secondes", 1e9},
                             {"min", 60e9},
                             {"minute", 60e9},
                             {"minutes", 60e9}};
  return Lookup(scales, unit);
}

// k, M, G, T, P, E in either case; 0 for another letter.
double PrefixScale(char c) {
  switch (absl::ascii_toupper(c)) {
    case 'K':
      return 1e3;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case 'T':
      return 1e12;
    case 'P':
      return 1e15;
    case 'E':
      return 1e18;
    default:
      return 0;
  }
}

double BinaryPrefixScale(char c) {
  switch (absl::ascii_toupper(c)) {
    case 'K':
      return 1024.0;
    case 'M':
      return 1024.0 * 1024;
    case 'G':
      return 1024.0 * 1024 * 1024;
    case 'T':
      return 1024.0 * 1024 * 1024 * 1024;
    default:
      return 0;
  }
}

// Scale of "<prefix><one of symbols>".
std::optional<double> Prefixed(absl::string_view unit,
                               const std::vector<absl::string_view>& symbols) {
  for (const absl::string_view symbol : symbols) {
    if (unit == symbol) return 1;
    if (unit.size() != symbol.size() + 1 || !absl::EndsWith(unit, symbol)) continue;
    if (const double scale = PrefixScale(unit[0]); scale != 0) return scale;
  }
  return std::nullopt;
}

std::optional<double> ByteScale(absl::string_view unit) {
  // A lower-case b is a bit, and "Po", "To" must not be taken for words: only
  // these spellings.
  if (const auto scale = Prefixed(unit, {"B", "byte", "bytes", "o", "octet", "octets"})) {
    return scale;
  }
  if (unit == "By") return 1;
  if (unit.size() == 3 && unit[1] == 'i' && (unit[2] == 'B' || unit[2] == 'o')) {
    if (const double scale = BinaryPrefixScale(unit[0]); scale != 0) return scale;
  }
  return std::nullopt;
}

std::optional<double> FrequencyScale(absl::string_view unit) {
  const std::string lower = absl::AsciiStrToLower(unit);
  return Prefixed(lower, {"hz"});
}

// "GFLOPS" with a capital S is a rate; "GFLOP", "GFLOPs" and "gflops" are not.
std::optional<double> FlopScale(absl::string_view unit) {
  if (absl::EndsWith(unit, "FLOPS")) return std::nullopt;
  const std::string lower = absl::AsciiStrToLower(unit);
  if (lower == "{flop}") return 1;
  return Prefixed(lower, {"flop", "flops"});
}

UnitScale Quotient(absl::string_view printed, absl::string_view above, absl::string_view below) {
  const std::optional<double> time = TimeScale(below);
  if (time.has_value()) {
    const double per_second = 1e9 / *time;
    if (const auto bytes = ByteScale(above)) return {"By/s", *bytes * per_second};
    if (const auto flop = FlopScale(above)) return {"{FLOP}/s", *flop * per_second};
    if (above == "cycle" || above == "cycles") return {"Hz", per_second};
  }
  if (const auto bytes = ByteScale(below); bytes.has_value() && *bytes == 1) {
    if (const auto flop = FlopScale(above)) return {"{FLOP}/By", *flop};
  }
  return {std::string(printed), 1};
}

// Spaces of any kind that stand between digits or before a unit.
std::string PlainSpaces(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"\xC2\xA0", " "}, {"\xE2\x80\xAF", " "}, {"\xE2\x80\x89", " "}});
}

// Removes `separator` where it separates groups of exactly three digits before
// the end of the whole part; false when it stands elsewhere.
bool RemoveThousands(std::string& whole, char separator) {
  size_t first = whole.find(separator);
  if (first == std::string::npos) return true;
  if (first == 0 || first > 3 || whole[0] == '0') return false;
  std::string out = whole.substr(0, first);
  size_t at = first;
  while (at < whole.size()) {
    if (whole[at] != separator || whole.size() - at < 4) return false;
    const std::string group = whole.substr(at + 1, 3);
    if (!std::all_of(group.begin(), group.end(), absl::ascii_isdigit)) return false;
    out += group;
    at += 4;
  }
  whole = out;
  return true;
}

// Digits with thousands and a decimal separator to what from_chars reads.
std::optional<std::string> Normalize(absl::string_view unsigned_text, bool decimal_comma) {
  std::string text(unsigned_text);
  std::string exponent;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    exponent = text.substr(e + 1);
    text.resize(e);
    if (!exponent.empty() && exponent[0] == '+') exponent.erase(0, 1);
    exponent = absl::StrCat("e", exponent);
  }
  const size_t comma = text.rfind(',');
  const char decimal = decimal_comma && comma != std::string::npos ? ',' : '.';
  const char thousands = decimal == ',' ? '.' : ',';
  const size_t point = text.find(decimal);
  std::string whole = text.substr(0, point);
  const std::string fraction = point == std::string::npos ? "" : text.substr(point + 1);
  if (absl::StrContains(whole, ' ') && absl::StrContains(whole, thousands)) return std::nullopt;
  if (!RemoveThousands(whole, thousands) || !RemoveThousands(whole, ' ')) return std::nullopt;
  const auto digits = [](const std::string& s) {
    return std::all_of(s.begin(), s.end(), absl::ascii_isdigit);
  };
  if (!digits(whole) || !digits(fraction) || whole.size() + fraction.size() == 0) {
    return std::nullopt;
  }
  return absl::StrCat(whole.empty() ? "0" : whole, ".", fraction.empty() ? "0" : fraction,
                      exponent);
}

absl::Status NumberError(absl::string_view text) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, "NUMBER_INVALID",
      absl::StrCat("\"", Truncate(CleanUtf8(text), 60), "\": expected a finite number"));
}

// Where the number at the start of `text` ends: sign, digits, separators
// between digits, exponent.
size_t NumberEnd(absl::string_view text) {
  const auto digit = [&](size_t i) { return i < text.size() && absl::ascii_isdigit(text[i]); };
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  while (at < text.size()) {
    const char c = text[at];
    const bool separator = c == '.' || c == ',' || c == ' ';
    if (digit(at) || (separator && digit(at + 1)) || (c == '.' && at > 0 && digit(at - 1))) {
      ++at;
      continue;
    }
    break;
  }
  if (at > 0 && at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const size_t sign = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+');
    if (digit(at + 1 + sign)) {
      at += 1 + sign;
      while (digit(at)) ++at;
    }
  }
  return at;
}

// Scale of a count's unit: nothing, a word of the annotation, or a suffix of
// thousands and then perhaps the word.
std::optional<double> CountScale(absl::string_view unit, absl::string_view annotation) {
  const auto is_word = [&](absl::string_view text) {
    if (text == annotation || text == absl::StrCat(annotation, "s")) return true;
    for (const internal::UnitWord& word : internal::kUnitWords) {
      if (word.annotation != annotation) continue;
      return text == word.en_plural || text == word.fr || text == word.fr_plural;
    }
    return false;
  };
  const std::string lower = absl::AsciiStrToLower(unit);
  if (lower.empty() || is_word(lower) || lower == absl::StrCat("{", annotation, "}")) return 1;
  const double scale = lower[0] == 'b' ? 1e9 : PrefixScale(lower[0]);
  const absl::string_view rest =
      absl::StripLeadingAsciiWhitespace(absl::string_view(lower).substr(1));
  if (scale != 0 && (rest.empty() || is_word(rest))) return scale;
  return std::nullopt;
}

// Scale from a printed unit to `base_unit`; nullopt for another family.
std::optional<double> ScaleTo(absl::string_view unit, absl::string_view base_unit) {
  const UnitScale known = ToBaseUnit(unit);
  if (known.unit == base_unit) return known.scale;
  if (base_unit == "{FLOP}") {
    const UnitScale rate = known;
    if (rate.unit == "{FLOP}/s" && !absl::StrContains(unit, '/')) return rate.scale;
    return std::nullopt;
  }
  if (base_unit == "{FLOP}/s" && absl::EndsWith(unit, "s") && known.unit == "{FLOP}") {
    return known.scale;
  }
  if (absl::StartsWith(base_unit, "{") && absl::EndsWith(base_unit, "}")) {
    return CountScale(unit, base_unit.substr(1, base_unit.size() - 2));
  }
  return std::nullopt;
}

}  // namespace

UnitScale ToBaseUnit(absl::string_view printed) {
  const absl::string_view unit = absl::StripAsciiWhitespace(printed);
  if (unit.empty() || unit == "1") return {"1", 1};
  if (const size_t slash = unit.find('/'); slash != absl::string_view::npos) {
    return Quotient(unit, unit.substr(0, slash), unit.substr(slash + 1));
  }
  if (const auto scale = TimeScale(unit)) return {"ns", *scale};
  if (const auto scale = FrequencyScale(unit)) return {"Hz", *scale};
  if (const auto scale = ByteScale(unit)) return {"By", *scale};
  if (const auto scale = FlopScale(unit)) return {"{FLOP}", *scale};
  if (const auto scale = Prefixed(unit, {"FLOPS"})) return {"{FLOP}/s", *scale};
  if (unit == "W") return {"W", 1};
  if (unit == "mW") return {"W", 1e-3};
  if (unit == "kW") return {"W", 1e3};
  if (unit == "C" ||
      unit ==
          "\xC2\xB0"
          "C" ||
      unit == "degC" || unit == "Cel")
    return {"Cel", 1};
  return {std::string(unit), 1};
}

absl::StatusOr<double> ParseNumber(absl::string_view text, bool decimal_comma) {
  if (text.size() > kMaxNumberLength) return NumberError(text);
  const std::string spaced = PlainSpaces(text);
  absl::string_view rest = absl::StripAsciiWhitespace(spaced);
  const bool negative = absl::StartsWith(rest, "-");
  if (negative || absl::StartsWith(rest, "+")) rest.remove_prefix(1);
  const std::optional<std::string> plain = Normalize(rest, decimal_comma);
  if (!plain.has_value()) return NumberError(text);
  double value = 0;
  const char* end = plain->data() + plain->size();
  const auto [stop, error] = std::from_chars(plain->data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return NumberError(text);
  return negative ? -value : value;
}

absl::StatusOr<double> ParseQuantity(absl::string_view text, absl::string_view base_unit,
                                     absl::string_view default_unit) {
  if (text.size() > kMaxNumberLength) return NumberError(text);
  const std::string spaced = PlainSpaces(text);
  const absl::string_view trimmed = absl::StripAsciiWhitespace(spaced);
  const size_t end = NumberEnd(trimmed);
  const absl::string_view number = trimmed.substr(0, end);
  absl::string_view unit = absl::StripAsciiWhitespace(trimmed.substr(end));
  absl::StatusOr<double> value = ParseNumber(number);
  if (!value.ok()) value = ParseNumber(number, /*decimal_comma=*/true);
  if (!value.ok()) return NumberError(text);
  if (unit.empty()) unit = default_unit;
  const std::optional<double> scale = ScaleTo(unit, base_unit);
  if (!scale.has_value()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "UNIT_MISMATCH",
                     absl::StrCat("\"", Truncate(CleanUtf8(text), 60), "\": expected a unit of ",
                                  base_unit, ", found \"", Truncate(CleanUtf8(unit), 30), "\""));
  }
  if (!std::isfinite(*value * *scale)) return NumberError(text);
  return *value * *scale;
}

}  // namespace solward
