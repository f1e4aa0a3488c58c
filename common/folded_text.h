// A text made easy to match: accents removed, typographic quotes, dashes and
// spaces made plain, with the way back to the bytes as written. What is not in
// the Latin alphabet becomes '?'.
//
//   FoldedText text("Mesurer l’occupancy à 68,72 GFLOP");
//   text.lower();                      // "mesurer l'occupancy a 68,72 gflop"
//   text.Original(8, 19);              // "l’occupancy"
#ifndef SOLWARD_COMMON_FOLDED_TEXT_H_
#define SOLWARD_COMMON_FOLDED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace solward {

// Immutable. lower() and plain() are ASCII and of the same length; offsets in
// them are "folded offsets".
class FoldedText {
 public:
  explicit FoldedText(absl::string_view text);

  const std::string& lower() const { return lower_; }
  const std::string& plain() const { return plain_; }  // case kept
  size_t size() const { return lower_.size(); }

  // Byte offset in the text as written.
  size_t OriginalOffset(size_t folded) const { return offsets_[folded]; }
  // The words as written from one folded offset up to another.
  std::string Original(size_t begin, size_t end) const;
  // The folded character stands for a no-break or thin space.
  bool IsNoBreakSpace(size_t folded) const;
  // The folded character is written as one ASCII byte.
  bool IsAscii(size_t folded) const;

 private:
  void Append(absl::string_view folded, size_t offset);

  std::string text_, plain_, lower_;
  std::vector<uint32_t> offsets_;  // one a folded character, and the end
};

// Lower case without accents, for one word.
std::string FoldWord(absl::string_view word);

}  // namespace solward

#endif  // SOLWARD_COMMON_FOLDED_TEXT_H_
