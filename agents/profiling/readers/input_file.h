// Bytes of a capture, whether it lies there plain, gzipped or zstd-compressed
// (told by magic bytes, never by name).
//
//   ASSIGN_OR_RETURN(auto input, InputFile::Open(path, limits));
//   char block[1 << 16];
//   for (;;) {
//     ASSIGN_OR_RETURN(size_t n, input->Read(block, sizeof block));
//     if (n == 0) break;                        // end of the file
//   }
#ifndef SOLWARD_AGENTS_PROFILING_READERS_INPUT_FILE_H_
#define SOLWARD_AGENTS_PROFILING_READERS_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/readers/reader.h"

namespace solward::readers {

enum class Compression { kNone, kGzip, kZstd };

// Not thread-safe.
class InputFile {
 public:
  // NOT_FOUND or PERMISSION_DENIED when the file cannot be opened,
  // INVALID_ARGUMENT (reason CAPTURE_EMPTY) when it has no bytes. Messages name
  // the last component of the path.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                         const ReaderLimits& limits);
  virtual ~InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // The next bytes, decompressed, at most `size`; 0 only at the end. Several
  // gzip members or zstd frames in a row are one stream. DATA_LOSS (reason
  // CAPTURE_TRUNCATED: "truncated gzip: N bytes were readable", or
  // CAPTURE_CORRUPT) after everything readable was handed out;
  // RESOURCE_EXHAUSTED beyond max_decompressed_bytes.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

  Compression compression() const { return compression_; }
  // Bytes handed out so far.
  uint64_t bytes_read() const { return bytes_read_; }
  // Size of the file as it lies there.
  uint64_t file_size() const { return file_size_; }
  // Last component of the path, for messages.
  const std::string& label() const { return label_; }

 protected:
  InputFile() = default;

 private:
  virtual absl::StatusOr<size_t> ReadSome(char* buffer, size_t size) = 0;

  Compression compression_ = Compression::kNone;
  uint64_t bytes_read_ = 0;
  uint64_t file_size_ = 0;
  uint64_t max_bytes_ = 0;
  std::string label_;
};

// The whole file as text. RESOURCE_EXHAUSTED when it has more than `max_bytes`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, const ReaderLimits& limits,
                                          uint64_t max_bytes);

// At most `max_bytes` from the start; shorter when the file ends or breaks
// before. Whether it broke is in `*end`: OK, or the status of the reading.
absl::StatusOr<std::string> ReadHead(const std::string& path, const ReaderLimits& limits,
                                     size_t max_bytes, absl::Status* end = nullptr);

// A file on disk with the decompressed bytes: the given one when it is plain,
// else a temporary one (mode 0600) that is removed with this object. Movable.
class PlainFile {
 public:
  // `directory` empty: $TMPDIR or /tmp.
  static absl::StatusOr<PlainFile> Make(const std::string& path, const ReaderLimits& limits,
                                        const std::string& directory = "");
  PlainFile(PlainFile&& other) noexcept;
  PlainFile& operator=(PlainFile&& other) noexcept;
  ~PlainFile();

  const std::string& path() const { return path_; }
  bool temporary() const { return temporary_; }

 private:
  PlainFile(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  void Remove();

  std::string path_;
  bool temporary_ = false;
};

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_INPUT_FILE_H_
