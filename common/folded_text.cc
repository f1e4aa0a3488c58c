#include "common/folded_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/ascii.h"

namespace solward {
namespace {

struct Fold {
  uint32_t first, last;  // code points, inclusive
  const char* to;
};

// Sorted by code point. Latin letters fold to their base letter.
constexpr Fold kFolds[] = {
    {0xA0, 0xA0, " "},      {0xAB, 0xAB, "\""},      {0xAD, 0xAD, ""},       {0xB2, 0xB2, "^2"},
    {0xB3, 0xB3, "^3"},     {0xB4, 0xB4, "'"},       {0xB5, 0xB5, "u"},      {0xB7, 0xB7, "*"},
    {0xB9, 0xB9, "^1"},     {0xBB, 0xBB, "\""},      {0xC0, 0xC5, "A"},      {0xC6, 0xC6, "AE"},
    {0xC7, 0xC7, "C"},      {0xC8, 0xCB, "E"},       {0xCC, 0xCF, "I"},      {0xD1, 0xD1, "N"},
    {0xD2, 0xD6, "O"},      {0xD7, 0xD7, "x"},       {0xD9, 0xDC, "U"},      {0xDD, 0xDD, "Y"},
    {0xE0, 0xE5, "a"},      {0xE6, 0xE6, "ae"},      {0xE7, 0xE7, "c"},      {0xE8, 0xEB, "e"},
    {0xEC, 0xEF, "i"},      {0xF1, 0xF1, "n"},       {0xF2, 0xF6, "o"},      {0xF9, 0xFC, "u"},
    {0xFD, 0xFD, "y"},      {0xFF, 0xFF, "y"},       {0x152, 0x152, "OE"},   {0x153, 0x153, "oe"},
    {0x2B9, 0x2BF, "'"},    {0x300, 0x36F, ""},      {0x3BC, 0x3BC, "u"},    {0x2000, 0x200A, " "},
    {0x200B, 0x200D, ""},   {0x2010, 0x2015, "-"},   {0x2018, 0x201B, "'"},  {0x201C, 0x201F, "\""},
    {0x2022, 0x2022, "-"},  {0x2026, 0x2026, "..."}, {0x202F, 0x202F, " "},  {0x2032, 0x2032, "'"},
    {0x2033, 0x2033, "\""}, {0x2039, 0x203A, "\""},  {0x205F, 0x205F, " "},  {0x2060, 0x2060, ""},
    {0x2070, 0x2070, "^0"}, {0x2074, 0x2074, "^4"},  {0x2075, 0x2075, "^5"}, {0x2076, 0x2076, "^6"},
    {0x2077, 0x2077, "^7"}, {0x2078, 0x2078, "^8"},  {0x2079, 0x2079, "^9"}, {0x2212, 0x2212, "-"},
    {0x22C5, 0x22C5, "*"},  {0x3000, 0x3000, " "},   {0xFEFF, 0xFEFF, ""},
};

// Length and code point of the UTF-8 sequence at `at`; a stray byte is one
// character of its own.
size_t Decode(absl::string_view text, size_t at, uint32_t& code_point) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  const size_t length = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  code_point = first;
  if (length == 1 || at + length > text.size()) return 1;
  uint32_t value = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 1;
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  code_point = value;
  return length;
}

absl::string_view FoldOf(uint32_t code_point) {
  const Fold* fold =
      std::upper_bound(std::begin(kFolds), std::end(kFolds), code_point,
                       [](uint32_t value, const Fold& entry) { return value < entry.first; });
  if (fold == std::begin(kFolds)) return "?";
  --fold;
  return code_point <= fold->last ? fold->to : "?";
}

}  // namespace

FoldedText::FoldedText(absl::string_view text) : text_(text) {
  plain_.reserve(text.size());
  offsets_.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    uint32_t code_point = 0;
    const size_t length = Decode(text, at, code_point);
    if (code_point < 0x80) {
      const char c = static_cast<char>(code_point);
      const bool blank = c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '\0';
      Append(absl::string_view(blank ? " " : &c, 1), at);
    } else {
      absl::string_view fold = FoldOf(code_point);
      // "10" with superscripts 1 and 2 is 10^12.
      if (fold.size() == 2 && fold[0] == '^' && plain_.find('^') != std::string::npos &&
          !offsets_.empty() && !IsAscii(plain_.size() - 1) && plain_.size() >= 2 &&
          absl::ascii_isdigit(plain_.back())) {
        fold.remove_prefix(1);
      }
      Append(fold, at);
    }
    at += length;
  }
  offsets_.push_back(static_cast<uint32_t>(text.size()));
  lower_ = absl::AsciiStrToLower(plain_);
}

void FoldedText::Append(absl::string_view folded, size_t offset) {
  for (const char c : folded) {
    plain_.push_back(c);
    offsets_.push_back(static_cast<uint32_t>(offset));
  }
}

std::string FoldedText::Original(size_t begin, size_t end) const {
  if (begin >= end) return "";
  size_t last = offsets_[end];
  // A character that folds to several must not be cut.
  for (size_t i = end; last == offsets_[end - 1] && i < offsets_.size(); ++i) last = offsets_[i];
  return text_.substr(offsets_[begin], last - offsets_[begin]);
}

bool FoldedText::IsNoBreakSpace(size_t folded) const {
  return plain_[folded] == ' ' && !IsAscii(folded);
}

bool FoldedText::IsAscii(size_t folded) const {
  return static_cast<uint8_t>(text_[offsets_[folded]]) < 0x80;
}

std::string FoldWord(absl::string_view word) { return FoldedText(word).lower(); }

}  // namespace solward
