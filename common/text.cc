#include "common/text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace solward {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr absl::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

// Length of the valid UTF-8 sequence at the start of `text` (not empty), with
// its code point; 0 when the bytes are not one (overlong forms, surrogates and
// values beyond U+10FFFF included).
size_t DecodeOne(absl::string_view text, uint32_t& code_point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    code_point = first;
    return 1;
  }
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t value = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return 0;
  code_point = value;
  return length;
}

bool IsControl(uint32_t code_point) {
  return (code_point < 0x20 && code_point != '\t' && code_point != '\n') ||
         (code_point >= 0x7F && code_point <= 0x9F);
}

}  // namespace

std::string CleanUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t length = DecodeOne(text, code_point);
    if (length == 0) {
      absl::StrAppend(&out, kReplacement);
      text.remove_prefix(1);
      continue;
    }
    if (IsControl(code_point)) {
      out.push_back(' ');
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string Truncate(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const bool with_ellipsis = max_bytes >= kEllipsis.size();
  size_t end = with_ellipsis ? max_bytes - kEllipsis.size() : max_bytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  std::string out(text.substr(0, end));
  if (with_ellipsis) absl::StrAppend(&out, kEllipsis);
  return out;
}

}  // namespace solward
