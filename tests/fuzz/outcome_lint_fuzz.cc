// Every offence names words that stand at its offset.
#include <cstdlib>

#include "common/outcome_lint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const solward::Offence& offence : solward::LintOutcomeText(text)) {
    if (offence.offset + offence.words.size() > size ||
        text.substr(offence.offset, offence.words.size()) != offence.words) {
      std::abort();
    }
  }
  return 0;
}
