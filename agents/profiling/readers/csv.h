// Records of comma-separated text as NVIDIA's tools write it: double quotes
// around a field, "" inside it, line breaks allowed in quotes; and the text
// itself from whatever encoding a shell's redirection left it in.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_CSV_H_
#define SOLWARD_AGENTS_PROFILING_READERS_CSV_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward::readers {

// UTF-16 (either order, with or without byte order mark) and UTF-8 with a byte
// order mark to plain UTF-8; other text as it is. PowerShell's `>` writes UTF-16.
std::string ToUtf8(std::string bytes);

// Walks over records. Views of the text must stay valid. Not thread-safe.
class CsvRecords {
 public:
  explicit CsvRecords(absl::string_view text) : text_(text) {}

  // The next record's fields, without quotes; false at the end.
  bool Next(std::vector<std::string>* fields);
  // The rest of the current line, untouched by quoting; false at the end.
  bool NextLine(absl::string_view* line);
  // What the next record starts with; 0 at the end.
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Line (from 1) the last record or line began in.
  size_t line() const { return line_; }
  // The text ended inside a quoted field.
  bool unterminated() const { return unterminated_; }

 private:
  void ReadField(std::string* field);

  absl::string_view text_;
  size_t at_ = 0;
  size_t line_ = 0;
  size_t next_line_ = 1;
  bool unterminated_ = false;
};

// How a file writes its numbers, told from all of them together: "1,205.00" and
// "3.20" speak for a decimal point, "65,77" and "1.234.567" for a comma.
class NumberStyle {
 public:
  void See(absl::string_view text);
  // Whether a comma is the decimal separator. INVALID_ARGUMENT (reason
  // NUMBER_FORMAT_AMBIGUOUS) when the file contradicts itself or when only
  // numbers like "117.344" are there, which may be either.
  absl::StatusOr<bool> DecimalComma(absl::string_view label) const;

 private:
  std::string point_, comma_, open_;  // one example each
};

// The number of a cell in a file of this style; nullopt when it is none. A cell
// with instances ("58.5 (12; 46.5)") has its aggregate before the parenthesis.
std::optional<double> PrintedNumber(absl::string_view text, bool decimal_comma);

// "", "n/a", "N/A", "[N/A]", "nan", "inf", "no data", "ERR!", "[Not Supported]",
// "[Unknown Error]" and the like: the tool ran and has no value.
bool IsNoValue(absl::string_view text);

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_CSV_H_
