#include "coordinator/report/markdown_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace solward::report {
namespace {

void AppendRow(const std::vector<std::string>& cells, const std::vector<size_t>& columns,
               const std::vector<size_t>& widths, std::string& out) {
  for (size_t column : columns) {
    const std::string& cell = cells[column];
    absl::StrAppend(&out, "| ", cell, std::string(widths[column] - DisplayWidth(cell), ' '), " ");
  }
  out += "|\n";
}

}  // namespace

size_t DisplayWidth(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void MarkdownTable::AddRow(std::vector<std::string> cells) {
  cells.resize(header_.size());
  for (std::string& cell : cells) cell = absl::StrReplaceAll(cell, {{"|", "\\|"}});
  rows_.push_back(std::move(cells));
}

std::string MarkdownTable::ToString() const {
  if (rows_.empty()) return "";
  std::vector<size_t> columns;
  std::vector<size_t> widths(header_.size());
  for (size_t column = 0; column < header_.size(); ++column) {
    bool used = false;
    widths[column] = DisplayWidth(header_[column]);
    for (const auto& row : rows_) {
      used = used || !row[column].empty();
      widths[column] = std::max(widths[column], DisplayWidth(row[column]));
    }
    if (used) columns.push_back(column);
  }
  std::string out;
  AppendRow(header_, columns, widths, out);
  for (size_t column : columns) absl::StrAppend(&out, "|", std::string(widths[column] + 2, '-'));
  out += "|\n";
  for (const auto& row : rows_) AppendRow(row, columns, widths, out);
  return out;
}

}  // namespace solward::report
