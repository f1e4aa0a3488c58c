// A Markdown table whose columns also line up on a terminal.
#ifndef SOLWARD_COORDINATOR_REPORT_MARKDOWN_TABLE_H_
#define SOLWARD_COORDINATOR_REPORT_MARKDOWN_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace solward::report {

class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> header) : header_(std::move(header)) {}

  // Missing cells are empty. A "|" in a cell is escaped.
  void AddRow(std::vector<std::string> cells);

  // Every column that is empty in all rows is left out; no rows, no text.
  std::string ToString() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters of a UTF-8 text, the width of the texts a report holds.
size_t DisplayWidth(absl::string_view text);

}  // namespace solward::report

#endif  // SOLWARD_COORDINATOR_REPORT_MARKDOWN_TABLE_H_
