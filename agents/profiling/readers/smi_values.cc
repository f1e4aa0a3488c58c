#include "agents/profiling/readers/smi_values.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "agents/profiling/readers/csv.h"
#include "common/text.h"
#include "common/units.h"

namespace solward::readers {
namespace {

// Length of a plain decimal number at the start of the text; 0: none.
size_t NumberLength(absl::string_view text) {
  size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  const size_t first = at;
  while (at < text.size() && absl::ascii_isdigit(text[at])) ++at;
  if (at == first) return 0;
  if (at + 1 < text.size() && text[at] == '.' && absl::ascii_isdigit(text[at + 1])) {
    ++at;
    while (at < text.size() && absl::ascii_isdigit(text[at])) ++at;
  }
  return at;
}

bool IsUnit(absl::string_view text) {
  for (const absl::string_view unit : {"%", "W", "mW", "C", "MHz", "kHz", "GHz", "B", "KiB", "MiB",
                                       "GiB", "KB/s", "MB/s", "us", "ms", "s"}) {
    if (text == unit) return true;
  }
  return false;
}

}  // namespace

void AddSmiValue(absl::string_view field, absl::string_view printed, absl::string_view unit,
                 SmiSample* sample, Statistics* statistics) {
  printed = absl::StripAsciiWhitespace(printed);
  if (IsNoValue(printed)) {
    statistics->Count("smi_values_missing", v1::PARSE_SEVERITY_INFO,
                      "Fields that nvidia-smi has no value for (N/A, Not Supported, ERR!).");
    return;
  }
  const size_t length = NumberLength(printed);
  const absl::string_view rest = absl::StripAsciiWhitespace(printed.substr(length));
  double number = 0;
  if (length == 0 || (!rest.empty() && !IsUnit(rest)) ||
      !absl::SimpleAtod(printed.substr(0, length), &number)) {
    sample->texts.emplace(std::string(field), CleanUtf8(printed));
    return;
  }
  if (!rest.empty()) unit = rest;
  const UnitScale scale = unit == "C" ? UnitScale{"Cel", 1} : ToBaseUnit(unit);
  sample->values.emplace(std::string(field),
                         CounterValue{number * scale.scale, scale.unit, scale.scale});
  if (rest.empty() && unit.empty()) sample->texts.emplace(std::string(field), CleanUtf8(printed));
}

std::string SmiText(const SmiSample& sample, std::initializer_list<absl::string_view> fields) {
  for (const absl::string_view field : fields) {
    const auto found = sample.texts.find(field);
    if (found != sample.texts.end()) return found->second;
  }
  return "";
}

double SmiNumber(const SmiSample& sample, std::initializer_list<absl::string_view> fields,
                 double most) {
  for (const absl::string_view field : fields) {
    const auto found = sample.values.find(field);
    if (found == sample.values.end()) continue;
    const double value = found->second.value;
    return value >= 0 && value <= most ? value : 0;
  }
  return 0;
}

}  // namespace solward::readers
