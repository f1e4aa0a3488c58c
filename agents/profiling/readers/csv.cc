#include "agents/profiling/readers/csv.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/units.h"

namespace solward::readers {
namespace {

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (c >> 6)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (c >> 12)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | (c >> 18)));
    out->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

std::string FromUtf16(absl::string_view bytes, bool big_endian) {
  const auto unit = [&](size_t i) {
    const auto a = static_cast<unsigned char>(bytes[i]);
    const auto b = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<uint32_t>(big_endian ? a << 8 | b : b << 8 | a);
  };
  std::string out;
  out.reserve(bytes.size() / 2);
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint32_t c = unit(i);
    if (c == 0xfeff) continue;
    if (c >= 0xd800 && c < 0xdc00 && i + 3 < bytes.size()) {
      const uint32_t low = unit(i + 2);
      if (low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        i += 2;
      }
    }
    if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
    AppendUtf8(c, &out);
  }
  return out;
}

// Digits with '.' and ',' only, an optional sign before; what else may be a
// number says nothing about the separators.
bool HasSeparators(absl::string_view text) {
  if (text.empty() || text.find_first_of(".,") == absl::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isdigit(c) || c == '.' || c == ','; });
}

// Whether `separator` splits the text into groups of three after the first.
bool GroupsOfThree(absl::string_view text, char separator) {
  size_t at = text.find(separator);
  if (at == 0 || at > 3 || text[0] == '0') return false;
  while (at != absl::string_view::npos) {
    const size_t next = text.find(separator, at + 1);
    const size_t end = next == absl::string_view::npos ? text.size() : next;
    if (end - at - 1 != 3) return false;
    at = next;
  }
  return true;
}

}  // namespace

std::string ToUtf8(std::string bytes) {
  if (absl::StartsWith(bytes, "\xff\xfe")) return FromUtf16(bytes, false);
  if (absl::StartsWith(bytes, "\xfe\xff")) return FromUtf16(bytes, true);
  if (absl::StartsWith(bytes, "\xef\xbb\xbf")) return bytes.substr(3);
  // Without a mark: text of these tools starts with ASCII.
  if (bytes.size() >= 4 && bytes[1] == '\0' && bytes[3] == '\0' && bytes[0] != '\0') {
    return FromUtf16(bytes, false);
  }
  if (bytes.size() >= 4 && bytes[0] == '\0' && bytes[2] == '\0' && bytes[1] != '\0') {
    return FromUtf16(bytes, true);
  }
  return bytes;
}

void CsvRecords::ReadField(std::string* field) {
  if (at_ < text_.size() && text_[at_] == '"') {
    ++at_;
    for (;;) {
      const size_t quote = text_.find('"', at_);
      if (quote == absl::string_view::npos) {
        absl::StrAppend(field, text_.substr(at_));
        at_ = text_.size();
        unterminated_ = true;
        break;
      }
      absl::StrAppend(field, text_.substr(at_, quote - at_));
      at_ = quote + 1;
      if (at_ >= text_.size() || text_[at_] != '"') break;
      field->push_back('"');
      ++at_;
    }
    next_line_ += static_cast<size_t>(std::count(field->begin(), field->end(), '\n'));
  }
  size_t end = text_.find_first_of(",\r\n", at_);
  if (end == absl::string_view::npos) end = text_.size();
  absl::StrAppend(field, text_.substr(at_, end - at_));
  at_ = end;
}

bool CsvRecords::Next(std::vector<std::string>* fields) {
  if (at_ >= text_.size()) return false;
  line_ = next_line_;
  size_t count = 0;
  for (;;) {
    if (fields->size() <= count) fields->emplace_back();
    (*fields)[count].clear();
    ReadField(&(*fields)[count]);
    ++count;
    if (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      continue;
    }
    break;
  }
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] == '\n') ++at_;
  ++next_line_;
  fields->resize(count);
  return true;
}

bool CsvRecords::NextLine(absl::string_view* line) {
  if (at_ >= text_.size()) return false;
  line_ = next_line_++;
  size_t end = text_.find('\n', at_);
  const size_t next = end == absl::string_view::npos ? text_.size() : end + 1;
  if (end == absl::string_view::npos) end = text_.size();
  *line = absl::StripSuffix(text_.substr(at_, end - at_), "\r");
  at_ = next;
  return true;
}

void NumberStyle::See(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  absl::ConsumePrefix(&text, "-");
  if (!HasSeparators(text)) return;
  const size_t comma = text.find_last_of(','), point = text.find_last_of('.');
  std::string* seen = &open_;
  if (comma != absl::string_view::npos && point != absl::string_view::npos) {
    seen = comma > point ? &comma_ : &point_;
  } else if (comma != absl::string_view::npos) {
    // "1,234" is what the C locale prints for 1234; a decimal comma with
    // exactly three decimals is never printed by the tools. "1,2,3" is a list.
    if (GroupsOfThree(text, ',') || text.find(',') != comma) return;
    seen = &comma_;
  } else if (text.find('.') != point) {
    if (!GroupsOfThree(text, '.')) return;  // "580.159.04" is a version
    seen = &comma_;
  } else if (!GroupsOfThree(text, '.')) {
    seen = &point_;
  }
  if (seen->empty()) *seen = std::string(text);
}

absl::StatusOr<bool> NumberStyle::DecimalComma(absl::string_view label) const {
  if (!point_.empty() && !comma_.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "NUMBER_FORMAT_AMBIGUOUS",
                     absl::StrCat(label, ": numbers with a decimal point (\"", point_,
                                  "\") and with a decimal comma (\"", comma_,
                                  "\") in one file; export it again with LC_ALL=C"));
  }
  if (!comma_.empty()) return true;
  if (!point_.empty() || open_.empty()) return false;
  return MakeError(absl::StatusCode::kInvalidArgument, "NUMBER_FORMAT_AMBIGUOUS",
                   absl::StrCat(label, ": \"", open_,
                                "\" may be a thousand or a fraction and no "
                                "other number settles it; export it again with LC_ALL=C"));
}

std::optional<double> PrintedNumber(absl::string_view text, bool decimal_comma) {
  text = absl::StripAsciiWhitespace(text);
  const size_t instances = text.find(" (");
  if (instances != absl::string_view::npos && instances > 0) text = text.substr(0, instances);
  const absl::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (!absl::ascii_isdigit(digits[0]) && digits[0] != '.')) return std::nullopt;
  std::string plain;
  if (decimal_comma && absl::StrContains(digits, '.')) {
    // In such a file a point only ever separates thousands.
    if (!GroupsOfThree(digits.substr(0, digits.find(',')), '.')) return std::nullopt;
    plain = absl::StrReplaceAll(text, {{".", ""}});
    text = plain;
  }
  absl::StatusOr<double> value = ParseNumber(text, decimal_comma);
  if (!value.ok()) return std::nullopt;
  return *value;
}

bool IsNoValue(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return true;
  if (text.front() == '[' && text.back() == ']') return true;
  static constexpr std::array<absl::string_view, 16> kWords = {
      "n/a",  "nan",     "-nan",          "inf",
      "-inf", "no data", "err!",          "none",
      "-",    "--",      "not supported", "unknown error",
      "n/s",  "(null)",  "not available", "insufficient permissions"};
  const std::string lower = absl::AsciiStrToLower(text);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](absl::string_view word) { return lower == word; });
}

}  // namespace solward::readers
