// Small capture files for tests, removed with the object.
#ifndef SOLWARD_AGENTS_PROFILING_READERS_TEMP_CAPTURE_H_
#define SOLWARD_AGENTS_PROFILING_READERS_TEMP_CAPTURE_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace solward::readers {

class TempCapture {
 public:
  explicit TempCapture(absl::string_view bytes) {
    const char* directory = std::getenv("TMPDIR");
    path_ = std::string(directory != nullptr ? directory : "/tmp") + "/solward_capture_XXXXXX";
    const int fd = mkstemp(path_.data());
    if (fd < 0) std::abort();
    std::FILE* file = fdopen(fd, "wb");
    if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) std::abort();
    std::fclose(file);
  }
  ~TempCapture() { std::remove(path_.c_str()); }
  TempCapture(const TempCapture&) = delete;
  TempCapture& operator=(const TempCapture&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_TEMP_CAPTURE_H_
