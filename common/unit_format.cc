// FormatQuantity: the one place where a number becomes text in a report.
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/unit_words.h"
#include "common/units.h"

namespace solward {
namespace {

constexpr absl::string_view kNarrowNoBreakSpace = "\xE2\x80\xAF";  // U+202F
constexpr int kMaxDecimals = 17;

struct Prefix {
  double scale;
  absl::string_view text;
};

constexpr Prefix kTime[] = {{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}};
constexpr Prefix kSi[] = {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}};

std::string Digits(double value, int decimals) { return absl::StrFormat("%.*f", decimals, value); }

double Rounded(double value, int decimals) {
  return std::strtod(Digits(value, decimals).c_str(), nullptr);
}

// The largest prefix that leaves at least 1, or the next one when rounding
// makes 1000 of the number.
template <size_t kSize>
const Prefix& ChoosePrefix(const Prefix (&prefixes)[kSize], double value, int decimals) {
  const double magnitude = std::abs(value);
  size_t chosen = 0;
  while (chosen + 1 < kSize && magnitude / prefixes[chosen + 1].scale >= 1) ++chosen;
  if (chosen + 1 < kSize && Rounded(magnitude / prefixes[chosen].scale, decimals) >= 1000) {
    ++chosen;
  }
  return prefixes[chosen];
}

// Thousands separated from four digits on, the sign of a zero dropped.
std::string Group(std::string digits, Language language) {
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative) digits.erase(0, 1);
  const bool zero = digits.find_first_not_of("0.") == std::string::npos;
  const size_t point = digits.find('.');
  const std::string whole = digits.substr(0, point);
  std::string out = negative && !zero ? "-" : "";
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % 3 == 0) {
      absl::StrAppend(&out, language == Language::kFrench ? kNarrowNoBreakSpace : ",");
    }
    out.push_back(whole[i]);
  }
  if (point != std::string::npos) {
    absl::StrAppend(&out, language == Language::kFrench ? "," : ".", digits.substr(point + 1));
  }
  return out;
}

std::string ByteSymbol(Language language) { return language == Language::kFrench ? "o" : "B"; }

// "{kernel}" for a printed magnitude: English counts one, French up to below two.
std::string Word(absl::string_view annotation, double magnitude, Language language) {
  const bool french = language == Language::kFrench;
  const bool plural = french ? magnitude >= 2 : magnitude != 1;
  for (const internal::UnitWord& word : internal::kUnitWords) {
    if (word.annotation != annotation) continue;
    return std::string(french ? (plural ? word.fr_plural : word.fr)
                              : (plural ? word.en_plural : word.en));
  }
  return absl::StrCat(annotation, plural ? "s" : "");
}

// The text after the number, prefix included; empty for a bare number.
std::string UnitText(absl::string_view unit, absl::string_view prefix, double magnitude,
                     Language language) {
  if (unit == "1" || unit.empty()) return std::string(prefix);
  if (unit == "Cel") return "°C";
  const std::vector<std::pair<absl::string_view, std::string>> symbols = {
      {"{FLOP}", "FLOP"}, {"By", ByteSymbol(language)}};
  if (unit == "{FLOP}" || unit == "{FLOP}/s" || unit == "{FLOP}/By" || unit == "By" ||
      unit == "By/s") {
    return absl::StrCat(prefix, absl::StrReplaceAll(unit, symbols));
  }
  const size_t close = unit.find('}');
  if (absl::StartsWith(unit, "{") && close != absl::string_view::npos) {
    return absl::StrCat(prefix, prefix.empty() ? "" : " ",
                        Word(unit.substr(1, close - 1), magnitude, language),
                        unit.substr(close + 1));
  }
  return absl::StrCat(prefix, unit);
}

}  // namespace

std::string FormatQuantity(double value, absl::string_view unit, bool si, int decimals,
                           Language language) {
  if (!std::isfinite(value)) return "?";
  if (decimals < 0) decimals = 0;
  if (decimals > kMaxDecimals) decimals = kMaxDecimals;
  absl::string_view prefix;
  if (si && unit == "ns") {
    const Prefix& chosen = ChoosePrefix(kTime, value, decimals);
    value /= chosen.scale;
    unit = chosen.text;
  } else if (si && unit != "%" && unit != "1" && unit != "Cel") {
    const Prefix& chosen = ChoosePrefix(kSi, value, decimals);
    value /= chosen.scale;
    prefix = chosen.text;
  }
  const std::string text = UnitText(unit, prefix, std::abs(Rounded(value, decimals)), language);
  return absl::StrCat(Group(Digits(value, decimals), language), text.empty() ? "" : " ", text);
}

}  // namespace solward
