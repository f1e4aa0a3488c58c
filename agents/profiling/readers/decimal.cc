#include "agents/profiling/readers/decimal.h"

#include <charconv>

#include "absl/strings/ascii.h"

namespace solward::readers {
namespace {

// Appends a digit; false when the value no longer fits.
bool Append(char digit, int64_t* value) {
  return !__builtin_mul_overflow(*value, int64_t{10}, value) &&
         !__builtin_add_overflow(*value, int64_t{digit - '0'}, value);
}

}  // namespace

absl::string_view Unquoted(absl::string_view token) {
  while (!token.empty() && absl::ascii_isspace(token.back())) token.remove_suffix(1);
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token = token.substr(1, token.size() - 2);
  }
  return token;
}

std::optional<int64_t> DecimalToInteger(absl::string_view text, int digits) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const size_t whole_digits = text.find_first_not_of("0123456789");
  absl::string_view whole = text.substr(0, whole_digits);
  absl::string_view rest = text.substr(whole.size());
  absl::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = rest.substr(0, rest.find_first_not_of("0123456789"));
    rest.remove_prefix(fraction.size());
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  int exponent = 0;
  if (!rest.empty() && (rest[0] == 'e' || rest[0] == 'E')) {
    rest.remove_prefix(1);
    if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
    if (error != std::errc() || exponent > 400 || exponent < -400) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  if (!rest.empty()) return std::nullopt;

  // The digits of whole and fraction in a row, with the point after `point`.
  const int64_t point = static_cast<int64_t>(whole.size()) + digits + exponent;
  const auto digit_at = [&](int64_t i) {
    if (i < 0) return '0';
    const auto at = static_cast<size_t>(i);
    if (at < whole.size()) return whole[at];
    return at - whole.size() < fraction.size() ? fraction[at - whole.size()] : '0';
  };
  int64_t value = 0;
  for (int64_t i = 0; i < point; ++i) {
    if (!Append(digit_at(i), &value)) return std::nullopt;
  }
  if (digit_at(point) >= '5' && __builtin_add_overflow(value, int64_t{1}, &value)) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace solward::readers
