// A statement prepared for reading: numbers and file names found, both marked
// so that a pattern needs to know neither their formats. Internal to the
// statement reader.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_TEXT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_TEXT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/folded_text.h"

namespace solward::workflow::internal {

struct Extent {
  size_t begin = 0, end = 0;  // folded offsets
};

struct Number {
  Extent extent;
  double value = 0;
  // "4,096" in a French text is 4.096 but where only a whole number can stand.
  double whole_value = 0;
  bool is_version = false;  // "12.4.1"
};

class StatementText {
 public:
  explicit StatementText(absl::string_view text);

  // Lower case, no accents; a number is #..#, a file \x02..\x02, words already
  // understood \x01..\x01. Newlines are spaces.
  const std::string& work() const { return work_; }
  const FoldedText& folded() const { return folded_; }
  // As written.
  std::string Original(Extent extent) const { return folded_.Original(extent.begin, extent.end); }
  // Case kept, no accents.
  std::string Plain(Extent extent) const;

  const std::map<size_t, Number>& numbers() const { return numbers_; }
  // The number that begins at a folded offset; nullptr when there is none.
  const Number* NumberAt(size_t begin) const;
  const std::vector<Extent>& files() const { return files_; }

  // Marks words as understood: no later pattern sees them.
  void Take(Extent extent);
  // The part between full stops, semicolons and question marks around a place.
  Extent ClauseAround(size_t at) const;

 private:
  void FindFiles();
  void FindNumbers();

  FoldedText folded_;
  std::string work_;
  int french_score_;
  std::map<size_t, Number> numbers_;
  std::vector<Extent> files_;
};

}  // namespace solward::workflow::internal

#endif  // SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_TEXT_H_
