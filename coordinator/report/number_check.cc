#include "coordinator/report/number_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace solward::report {
namespace {

bool HasDigit(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

// Without its code spans; a span opens and closes with as many backticks.
std::string WithoutCode(absl::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] != '`') {
      out += line[i++];
      continue;
    }
    const size_t fence = std::min(line.find_first_not_of('`', i), line.size()) - i;
    size_t at = i + fence;
    for (;;) {
      at = line.find('`', at);
      if (at == absl::string_view::npos) break;
      const size_t run = std::min(line.find_first_not_of('`', at), line.size()) - at;
      at += run;
      if (run == fence) break;
    }
    i = at == absl::string_view::npos ? i + fence : at;
  }
  return out;
}

std::string WithoutListNumber(const std::string& line) {
  const size_t end = line.find_first_not_of("0123456789");
  return end != 0 && end != std::string::npos && line.compare(end, 2, ". ") == 0
             ? line.substr(end + 2)
             : line;
}

}  // namespace

std::vector<std::string> NumbersWithoutMetric(const std::string& markdown, const v1::Report& report,
                                              const MetricCatalogue& catalogue, Language language) {
  std::vector<std::pair<std::string, std::string>> known, keys;
  for (const v1::Metric& metric : report.all_metrics()) {
    const MetricDefinition* definition = catalogue.Find(metric.id());
    if (definition == nullptr) continue;
    known.emplace_back(absl::StrCat(FormatQuantity(metric.value(), metric.unit(), definition->si,
                                                   definition->decimals, language),
                                    " [", metric.key(), "]"),
                       "");
    keys.emplace_back(absl::StrCat("[", metric.key(), "]"), "");
  }
  std::vector<std::string> left;
  for (absl::string_view line : absl::StrSplit(markdown, '\n')) {
    std::string rest = WithoutListNumber(WithoutCode(line));
    // A value must not be the tail of a longer number.
    for (const auto& [text, nothing] : known) {
      for (size_t at = rest.find(text); at != std::string::npos; at = rest.find(text, at)) {
        const bool tail = at > 0 && (absl::ascii_isdigit(rest[at - 1]) || rest[at - 1] == '.' ||
                                     rest[at - 1] == ',');
        if (tail) {
          ++at;
        } else {
          rest.erase(at, text.size());
        }
      }
    }
    rest = absl::StrReplaceAll(rest, keys);
    if (HasDigit(rest)) left.emplace_back(line);
  }
  return left;
}

}  // namespace solward::report
