// Any bytes give a status, never a crash.
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const solward::fuzz::MemoryFile file(data, size);
  (void)solward::readers::DetectKind(file.path());
  return 0;
}
