// A file in memory with a path, for readers that take one.
#ifndef SOLWARD_TESTS_FUZZ_MEMORY_FILE_H_
#define SOLWARD_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agents/profiling/readers/reader.h"

namespace solward::fuzz {

class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", 0)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

// Small enough that an input cannot make the fuzzer itself run out of memory.
inline readers::ReaderLimits SmallLimits() {
  readers::ReaderLimits limits;
  limits.max_decompressed_bytes = 16 << 20;
  limits.max_entries = 100'000;
  limits.max_string_bytes = 1 << 16;
  limits.max_model_bytes = 64 << 20;
  return limits;
}

}  // namespace solward::fuzz

#endif  // SOLWARD_TESTS_FUZZ_MEMORY_FILE_H_
