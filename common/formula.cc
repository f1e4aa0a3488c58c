// The formula grammar of the metric catalogue:
//
//   sum     = product { ("+" | "-") product }
//   product = unary { ("*" | "/") unary }
//   unary   = "-" unary | primary
//   primary = number | name | ("min" | "max") "(" sum "," sum ")" | "(" sum ")"
//
// Recursive descent, bounded in length and depth; it computes while it reads.
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/metric_catalogue.h"
#include "common/status.h"
#include "common/text.h"

namespace solward {
namespace {

constexpr size_t kMaxLength = 4096;
constexpr int kMaxDepth = 64;

// Value of a name. An error ends the evaluation.
using Resolve = std::function<absl::StatusOr<double>(absl::string_view name)>;

class FormulaParser {
 public:
  // Without `evaluate` the syntax is checked and names are resolved, but
  // nothing is computed.
  FormulaParser(absl::string_view expression, bool evaluate, Resolve resolve)
      : text_(expression), evaluate_(evaluate), resolve_(std::move(resolve)) {}

  absl::StatusOr<double> Run() {
    if (text_.size() > kMaxLength) {
      return MakeError(absl::StatusCode::kInvalidArgument, "FORMULA_TOO_LONG",
                       absl::StrCat("formula: expected at most ", kMaxLength, " characters, found ",
                                    text_.size()));
    }
    ASSIGN_OR_RETURN(const double value, Sum());
    SkipSpace();
    if (at_ < text_.size()) return SyntaxError("an operator or the end");
    return value;
  }

 private:
  absl::StatusOr<double> Sum() {
    ASSIGN_OR_RETURN(double left, Product());
    while (true) {
      if (Take('+')) {
        ASSIGN_OR_RETURN(const double right, Product());
        ASSIGN_OR_RETURN(left, Finite(left + right));
      } else if (Take('-')) {
        ASSIGN_OR_RETURN(const double right, Product());
        ASSIGN_OR_RETURN(left, Finite(left - right));
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<double> Product() {
    ASSIGN_OR_RETURN(double left, Unary());
    while (true) {
      if (Take('*')) {
        ASSIGN_OR_RETURN(const double right, Unary());
        ASSIGN_OR_RETURN(left, Finite(left * right));
      } else if (Take('/')) {
        ASSIGN_OR_RETURN(const double right, Unary());
        if (evaluate_ && right == 0) return NotFinite("a division by zero");
        ASSIGN_OR_RETURN(left, Finite(left / right));
      } else {
        return left;
      }
    }
  }

  absl::StatusOr<double> Unary() {
    bool negative = false;
    while (Take('-')) negative = !negative;
    ASSIGN_OR_RETURN(const double value, Primary());
    return negative ? -value : value;
  }

  absl::StatusOr<double> Primary() {
    SkipSpace();
    if (at_ >= text_.size()) return SyntaxError("a number, a name or '('");
    const char c = text_[at_];
    if (absl::ascii_isdigit(c) || c == '.') return Number();
    if (absl::ascii_isalpha(c) || c == '_') return NameOrCall();
    if (c != '(') return SyntaxError("a number, a name or '('");
    ++at_;
    ASSIGN_OR_RETURN(const double value, Nested());
    if (!Take(')')) return SyntaxError("')'");
    return value;
  }

  absl::StatusOr<double> Nested() {
    if (++depth_ > kMaxDepth) {
      return MakeError(
          absl::StatusCode::kInvalidArgument, "FORMULA_TOO_DEEP",
          absl::StrCat("formula: expected at most ", kMaxDepth, " nested parentheses, found more"));
    }
    absl::StatusOr<double> value = Sum();
    --depth_;
    return value;
  }

  absl::StatusOr<double> Number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) return SyntaxError("a finite number");
    at_ += static_cast<size_t>(end - begin);
    // "3x" or "1e" is a slip, not a product.
    if (at_ < text_.size() && IsNameCharacter(text_[at_])) return SyntaxError("an operator");
    return value;
  }

  absl::StatusOr<double> NameOrCall() {
    const size_t start = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    const absl::string_view name = text_.substr(start, at_ - start);
    if (!Take('(')) return resolve_(name);
    if (name != "min" && name != "max") {
      at_ = start;
      return SyntaxError("min or max");
    }
    ASSIGN_OR_RETURN(const double a, Nested());
    if (!Take(',')) return SyntaxError("','");
    ASSIGN_OR_RETURN(const double b, Nested());
    if (!Take(')')) return SyntaxError("')'");
    return name == "min" ? std::fmin(a, b) : std::fmax(a, b);
  }

  // Each step must be finite: an infinity must not vanish in a min().
  absl::StatusOr<double> Finite(double value) {
    if (!evaluate_) return 1;
    if (!std::isfinite(value)) return NotFinite("an overflow");
    return value;
  }

  absl::Status NotFinite(absl::string_view what) const {
    return MakeError(absl::StatusCode::kFailedPrecondition, "FORMULA_NOT_FINITE",
                     absl::StrCat("formula \"", Shown(), "\": expected a finite result, found ",
                                  what, " before character ", at_));
  }

  absl::Status SyntaxError(absl::string_view expected) const {
    const std::string found =
        at_ < text_.size() ? absl::StrCat("\"", Truncate(CleanUtf8(text_.substr(at_)), 16), "\"")
                           : "the end";
    return MakeError(absl::StatusCode::kInvalidArgument, "FORMULA_SYNTAX",
                     absl::StrCat("formula \"", Shown(), "\": expected ", expected,
                                  " at character ", at_, ", found ", found));
  }

  std::string Shown() const { return Truncate(CleanUtf8(text_), 120); }

  static bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  absl::string_view text_;
  bool evaluate_;
  Resolve resolve_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<double> EvaluateFormula(absl::string_view expression,
                                       const std::map<std::string, double, std::less<>>& inputs) {
  const auto resolve = [&](absl::string_view name) -> absl::StatusOr<double> {
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "FORMULA_INPUT_UNKNOWN",
                       absl::StrCat("formula \"", Truncate(CleanUtf8(expression), 120),
                                    "\": no value is given for \"", name, "\""));
    }
    if (!std::isfinite(found->second)) {
      return MakeError(absl::StatusCode::kFailedPrecondition, "FORMULA_NOT_FINITE",
                       absl::StrCat("formula input \"", name, "\": expected a finite value"));
    }
    return found->second;
  };
  return FormulaParser(expression, /*evaluate=*/true, resolve).Run();
}

absl::StatusOr<std::vector<std::string>> FormulaInputs(absl::string_view expression) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> seen;
  const auto resolve = [&](absl::string_view name) -> absl::StatusOr<double> {
    if (seen.insert(std::string(name)).second) names.emplace_back(name);
    return 1;
  };
  RETURN_IF_ERROR(FormulaParser(expression, /*evaluate=*/false, resolve).Run().status());
  return names;
}

}  // namespace solward
