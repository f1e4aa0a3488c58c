#include "coordinator/workflow/statement_text.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace solward::workflow::internal {
namespace {

re2::StringPiece Re(absl::string_view text) { return {text.data(), text.size()}; }

bool IsDigit(char c) { return absl::ascii_isdigit(c); }

// Above zero: French; below: English.
int FrenchScore(absl::string_view lower) {
  static const std::set<absl::string_view> french = {
      "le",   "la",  "les",  "de",     "du",      "des",      "et",   "est",  "un",   "une",
      "par",  "sur", "dans", "avec",   "pour",    "au",       "que",  "en",   "quel", "quelle",
      "sans", "pas", "dure", "donner", "mesurer", "calculer", "sont", "noyau"};
  static const std::set<absl::string_view> english = {
      "the", "of",   "and", "is",  "with", "for",   "to",   "per",  "what", "report",
      "at",  "does", "how", "its", "that", "takes", "step", "runs", "by",   "kernel"};
  int score = 0;
  for (const absl::string_view word :
       absl::StrSplit(lower, absl::ByAnyChar(" \n'(),.;:?!"), absl::SkipEmpty())) {
    score += static_cast<int>(french.count(word)) - static_cast<int>(english.count(word));
  }
  return score;
}

// --- numbers -----------------------------------------------------------------

// Reads one number of a text, in the formats of both languages.
class NumberReader {
 public:
  NumberReader(const FoldedText& text, int french_score, size_t begin)
      : text_(text),
        plain_(text.plain()),
        french_(french_score > 0),
        english_(french_score < 0),
        begin_(begin),
        at_(begin) {}

  Number Read() {
    Number number;
    if (ReadVersion()) {
      number.is_version = true;
    } else {
      Integer();
      Fraction();
      Exponent();
      number.value = std::strtod(digits_.c_str(), nullptr);
      number.whole_value = number.value;
      WholeValue(number);
      Power(number);
    }
    number.extent = {begin_, at_};
    if (begin_ > 0 && plain_[begin_ - 1] == '-' && MinusIsSign()) {
      number.extent.begin = begin_ - 1;
      number.value = -number.value;
      number.whole_value = -number.whole_value;
    }
    return number;
  }

 private:
  char At(size_t i) const { return i < plain_.size() ? plain_[i] : '\0'; }

  size_t DigitsFrom(size_t i) const {
    size_t end = i;
    while (IsDigit(At(end))) ++end;
    return end - i;
  }

  // "12.4.1": no number.
  bool ReadVersion() {
    size_t i = begin_ + DigitsFrom(begin_);
    int dots = 0;
    while (At(i) == '.' && IsDigit(At(i + 1))) {
      ++dots;
      i += 1 + DigitsFrom(i + 1);
    }
    if (dots >= 2) at_ = i;
    return dots >= 2;
  }

  // A group of exactly three digits after a separator.
  bool GroupAfter(size_t separator) const { return DigitsFrom(separator + 1) == 3; }

  void Integer() {
    const size_t first = DigitsFrom(at_);
    TakeDigits(first);
    if (first > 3 || At(begin_) == '0') return;
    const char separator = At(at_);
    if (!GroupAfter(at_) || !SeparatesThousands(separator, first)) return;
    const bool no_break = text_.IsNoBreakSpace(at_);
    while (At(at_) == separator && GroupAfter(at_) &&
           (separator != ' ' || text_.IsNoBreakSpace(at_) == no_break)) {
      ++at_;
      TakeDigits(3);
      grouped_ = true;
    }
    grouped_by_comma_ = separator == ',';
  }

  bool SeparatesThousands(char separator, size_t first) const {
    switch (separator) {
      case '_':
      case '\'':
        return true;
      case ',':
        return !french_ || TwoGroupsFollow();
      case ' ':
        if (text_.IsNoBreakSpace(at_)) return true;
        // "4 096" as French is typed; "128 256 512" and "1 100 2048" are lists.
        return first < 3 && (!english_ || AfterEqualSign()) &&
               !(At(at_ + 4) == ' ' && IsDigit(At(at_ + 5)) && !GroupAfter(at_ + 4));
      default:
        return false;
    }
  }

  bool TwoGroupsFollow() const { return At(at_ + 4) == ',' && GroupAfter(at_ + 4); }

  bool AfterEqualSign() const {
    size_t i = begin_;
    while (i > 0 && plain_[i - 1] == ' ') --i;
    return i > 0 && plain_[i - 1] == '=';
  }

  void Fraction() {
    const char mark = At(at_);
    if (mark == '.' && IsDigit(At(at_ + 1))) {
      TakeFraction();
      return;
    }
    if (mark != ',' || !IsDigit(At(at_ + 1)) || grouped_by_comma_) return;
    const size_t length = DigitsFrom(at_ + 1);
    const char after = At(at_ + 1 + length);
    // "1,2,4" and "512,1024" are lists.
    if (after == ',' && IsDigit(At(at_ + 2 + length))) return;
    if (!french_ && length > 2) return;
    if (after == '.' && IsDigit(At(at_ + 2 + length))) return;
    comma_fraction_ = true;
    TakeFraction();
  }

  void TakeFraction() {
    digits_ += '.';
    ++at_;
    TakeDigits(DigitsFrom(at_));
  }

  void Exponent() {
    if (At(at_) != 'e' && At(at_) != 'E') return;
    size_t i = at_ + 1;
    if (At(i) == '+' || At(i) == '-') ++i;
    const size_t length = DigitsFrom(i);
    if (length == 0 || length > 3 || absl::ascii_isalpha(At(i + length))) return;
    digits_.append(plain_, at_, i + length - at_);
    at_ = i + length;
  }

  // "4,096" read as 4.096 may still be 4096 where a whole number must stand.
  void WholeValue(Number& number) const {
    const absl::string_view lexeme = absl::string_view(plain_).substr(begin_, at_ - begin_);
    static const RE2 thousands(R"(\d{1,3}(?:,\d{3})+)");
    if (!comma_fraction_ || !RE2::FullMatch(Re(lexeme), thousands)) return;
    std::string joined(lexeme);
    joined.erase(std::remove(joined.begin(), joined.end(), ','), joined.end());
    number.whole_value = std::strtod(joined.c_str(), nullptr);
  }

  // "6.9x10^12", "10^12", "2^20".
  void Power(Number& number) {
    static const RE2 times(R"(\s?[xX*]\s?10\^(-?\d{1,3}))"), power(R"(\^(-?\d{1,3}))");
    re2::StringPiece rest(plain_.data() + at_, plain_.size() - at_);
    const char* from = rest.data();
    int exponent = 0;
    if (RE2::Consume(&rest, times, &exponent)) {
      number.value *= std::pow(10.0, exponent);
    } else if (RE2::Consume(&rest, power, &exponent)) {
      number.value = std::pow(number.value, exponent);
    } else {
      return;
    }
    number.whole_value = number.value;
    at_ += static_cast<size_t>(rest.data() - from);
  }

  bool MinusIsSign() const {
    if (begin_ < 2) return true;
    const char before = plain_[begin_ - 2];
    return before == ' ' || before == '\n' || before == '(' || before == '=' || before == ':';
  }

  void TakeDigits(size_t count) {
    digits_.append(plain_, at_, count);
    at_ += count;
  }

  const FoldedText& text_;
  const std::string& plain_;
  const bool french_, english_;
  const size_t begin_;
  size_t at_;
  std::string digits_;
  bool grouped_ = false, grouped_by_comma_ = false, comma_fraction_ = false;
};

}  // namespace

StatementText::StatementText(absl::string_view text)
    : folded_(text), work_(folded_.lower()), french_score_(FrenchScore(folded_.lower())) {
  std::replace(work_.begin(), work_.end(), '\n', ' ');
  for (char& c : work_) {
    if ((c > '\0' && c < ' ') || c == '#') c = ' ';
  }
  FindFiles();
  FindNumbers();
}

void StatementText::FindFiles() {
  static const RE2 file(
      R"((?:^|[\s"'`(\[,:;=<])((?:[\w.~+-]*/)*[\w.+-]*\w\.(?:py|cu|cuh|cpp|cxx|cc|c|h|hpp|sh|ipynb|slurm|sbatch|jl|rs|f90|ncu-rep|nsys-rep|qdrep|sqlite|csv|json(?:\.gz)?|gz|xml|txt|ya?ml|toml|so|pt|pth|onnx|safetensors|npy|npz|bin))(?:[\s"'`)\],:;?!>]|\.(?:\s|$)|$))");
  re2::StringPiece match[2];
  for (size_t at = 0; file.Match(work_, at, work_.size(), RE2::UNANCHORED, match, 2);) {
    const size_t begin = static_cast<size_t>(match[1].data() - work_.data());
    at = begin + match[1].size();
    files_.push_back({begin, at});
  }
  for (const Extent& extent : files_) {
    std::fill(work_.begin() + static_cast<std::ptrdiff_t>(extent.begin),
              work_.begin() + static_cast<std::ptrdiff_t>(extent.end), '\x02');
  }
}

void StatementText::FindNumbers() {
  for (size_t at = 0; at < work_.size();) {
    if (!IsDigit(work_[at])) {
      ++at;
      continue;
    }
    const char before = at > 0 ? work_[at - 1] : ' ';
    // "H200" is a name; "32x512" and "#x512" are two numbers.
    const bool after_times =
        before == 'x' && at >= 2 &&
        (work_[at - 2] == '#' || (work_[at - 2] == ' ' && at >= 3 && work_[at - 3] == '#'));
    if ((absl::ascii_isalnum(before) || before == '_') && !after_times) {
      while (at < work_.size() && (absl::ascii_isalnum(work_[at]) || work_[at] == '_')) ++at;
      continue;
    }
    const Number number = NumberReader(folded_, french_score_, at).Read();
    at = number.extent.end;
    std::fill(work_.begin() + static_cast<std::ptrdiff_t>(number.extent.begin),
              work_.begin() + static_cast<std::ptrdiff_t>(number.extent.end), '#');
    numbers_.emplace(number.extent.begin, number);
  }
}

std::string StatementText::Plain(Extent extent) const {
  return folded_.plain().substr(extent.begin, extent.end - extent.begin);
}

const Number* StatementText::NumberAt(size_t begin) const {
  const auto found = numbers_.find(begin);
  return found == numbers_.end() ? nullptr : &found->second;
}

void StatementText::Take(Extent extent) {
  std::fill(work_.begin() + static_cast<std::ptrdiff_t>(extent.begin),
            work_.begin() + static_cast<std::ptrdiff_t>(extent.end), '\x01');
}

Extent StatementText::ClauseAround(size_t at) const {
  constexpr size_t kMost = 400;
  const auto ends = [&](size_t i) {
    const char c = folded_.lower()[i];
    if (c == ';' || c == '?' || c == '!') return true;
    return c == '.' && work_[i] == '.' && (i + 1 >= work_.size() || work_[i + 1] == ' ');
  };
  Extent clause{at, at};
  while (clause.begin > 0 && at - clause.begin < kMost && !ends(clause.begin - 1)) --clause.begin;
  while (clause.end < work_.size() && clause.end - at < kMost && !ends(clause.end)) ++clause.end;
  return clause;
}

}  // namespace solward::workflow::internal
