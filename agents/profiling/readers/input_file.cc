#include "agents/profiling/readers/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::readers {
namespace {

constexpr size_t kBlock = 256 << 10;

std::string LastComponent(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

  absl::StatusOr<size_t> Read(char* buffer, size_t size) const {
    for (;;) {
      const ssize_t n = ::read(fd_, buffer, size);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR) {
        return MakeError(absl::StatusCode::kInternal, "CAPTURE_READ_FAILED",
                         absl::StrCat("reading failed: ", strerror(errno)));
      }
    }
  }

 private:
  int fd_;
};

absl::Status Truncated(absl::string_view format, uint64_t readable) {
  return MakeError(absl::StatusCode::kDataLoss, "CAPTURE_TRUNCATED",
                   absl::StrCat("truncated ", format, ": ", readable,
                                " bytes were readable before the file ends; copy it again"));
}

absl::Status Corrupt(absl::string_view format, uint64_t readable, absl::string_view why) {
  return MakeError(absl::StatusCode::kDataLoss, "CAPTURE_CORRUPT",
                   absl::StrCat("corrupt ", format, " (", why, "): ", readable,
                                " bytes were readable before it; copy it again"));
}

class PlainInput : public InputFile {
 public:
  explicit PlainInput(Descriptor file) : file_(std::move(file)) {}

 private:
  absl::StatusOr<size_t> ReadSome(char* buffer, size_t size) override {
    return file_.Read(buffer, size);
  }
  Descriptor file_;
};

class GzipInput : public InputFile {
 public:
  explicit GzipInput(Descriptor file) : file_(std::move(file)), block_(kBlock) {
    // 15 window bits, 16: gzip framing.
    initialised_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~GzipInput() override {
    if (initialised_) inflateEnd(&stream_);
  }

 private:
  absl::StatusOr<size_t> ReadSome(char* buffer, size_t size) override {
    if (!initialised_) {
      return MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY",
                       "no memory for decompression");
    }
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(std::min(size, kBlock));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted && !ended_ && broken_.ok()) {
      const uint64_t before = stream_.avail_out;
      broken_ = Step();
      produced_ += before - stream_.avail_out;
    }
    // What came before the damage is handed out first.
    if (stream_.avail_out == wanted && !broken_.ok()) return broken_;
    return wanted - stream_.avail_out;
  }

  absl::Status Step() {
    if (stream_.avail_in == 0) {
      ASSIGN_OR_RETURN(const size_t n, file_.Read(block_.data(), block_.size()));
      if (n == 0) {
        if (!between_members_) return Truncated("gzip", produced_);
        ended_ = true;
        return absl::OkStatus();
      }
      stream_.next_in = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_in = static_cast<uInt>(n);
    }
    // Zero padding after the last member is what tape-style writers leave.
    if (between_members_ && after_first_) {
      while (stream_.avail_in > 0 && *stream_.next_in == 0) ++stream_.next_in, --stream_.avail_in;
      if (stream_.avail_in == 0) return absl::OkStatus();
    }
    between_members_ = false;
    const int rc = inflate(&stream_, Z_NO_FLUSH);
    if (rc == Z_STREAM_END) {
      between_members_ = after_first_ = true;
      inflateReset(&stream_);
    } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
      return Corrupt("gzip", produced_, stream_.msg != nullptr ? stream_.msg : "bad data");
    }
    return absl::OkStatus();
  }

  Descriptor file_;
  std::vector<char> block_;
  z_stream stream_ = {};
  bool initialised_ = false;
  bool between_members_ = false;
  bool after_first_ = false;
  bool ended_ = false;
  absl::Status broken_;
  uint64_t produced_ = 0;
};

struct ZstdFree {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdInput : public InputFile {
 public:
  explicit ZstdInput(Descriptor file)
      : file_(std::move(file)), block_(kBlock), stream_(ZSTD_createDStream()) {
    if (stream_ != nullptr) ZSTD_initDStream(stream_.get());
  }

 private:
  absl::StatusOr<size_t> ReadSome(char* buffer, size_t size) override {
    if (stream_ == nullptr) {
      return MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY",
                       "no memory for decompression");
    }
    ZSTD_outBuffer out = {buffer, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !flushing_) {
        ASSIGN_OR_RETURN(const size_t n, file_.Read(block_.data(), block_.size()));
        if (n == 0) {
          if (!frame_ended_) return Truncated("zstd", produced_);
          return 0;
        }
        in_ = {block_.data(), n, 0};
      }
      const size_t rc = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(rc)) return Corrupt("zstd", produced_, ZSTD_getErrorName(rc));
      frame_ended_ = rc == 0;
      // A full output buffer may leave more inside the decoder.
      flushing_ = out.pos == out.size && !frame_ended_;
    }
    produced_ += out.pos;
    return out.pos;
  }

  Descriptor file_;
  std::vector<char> block_;
  std::unique_ptr<ZSTD_DStream, ZstdFree> stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool frame_ended_ = false;
  bool flushing_ = false;
  uint64_t produced_ = 0;
};

Compression CompressionOf(const unsigned char* magic, size_t size) {
  if (size >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) return Compression::kGzip;
  if (size >= 4 && magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd) {
    return Compression::kZstd;
  }
  return Compression::kNone;
}

absl::Status OpenError(const std::string& label, int error) {
  const absl::StatusCode code = error == ENOENT ? absl::StatusCode::kNotFound
                                : error == EACCES || error == EPERM
                                    ? absl::StatusCode::kPermissionDenied
                                    : absl::StatusCode::kInternal;
  return MakeError(code, "CAPTURE_OPEN_FAILED",
                   absl::StrCat(label, ": cannot be opened: ", strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path,
                                                           const ReaderLimits& limits) {
  const std::string label = LastComponent(path);
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return OpenError(label, errno);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return OpenError(label, errno);
  if (!S_ISREG(info.st_mode)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_KIND_UNKNOWN",
                     absl::StrCat(label, ": expected a regular file"));
  }
  if (info.st_size == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "CAPTURE_EMPTY",
                     absl::StrCat(label,
                                  ": the file is empty (0 bytes); the profiler wrote "
                                  "nothing or the copy failed"));
  }
  unsigned char magic[4] = {};
  const ssize_t n = ::pread(file.get(), magic, sizeof magic, 0);
  if (n < 0) return OpenError(label, errno);
  const Compression compression = CompressionOf(magic, static_cast<size_t>(n));
  std::unique_ptr<InputFile> input;
  switch (compression) {
    case Compression::kNone:
      input = std::make_unique<PlainInput>(std::move(file));
      break;
    case Compression::kGzip:
      input = std::make_unique<GzipInput>(std::move(file));
      break;
    case Compression::kZstd:
      input = std::make_unique<ZstdInput>(std::move(file));
      break;
  }
  input->compression_ = compression;
  input->file_size_ = static_cast<uint64_t>(info.st_size);
  input->max_bytes_ = limits.max_decompressed_bytes;
  input->label_ = label;
  return input;
}

absl::StatusOr<size_t> InputFile::Read(char* buffer, size_t size) {
  if (size == 0) return 0;
  absl::StatusOr<size_t> n = ReadSome(buffer, size);
  if (!n.ok()) return Annotate(n.status(), label_);
  if (*n > max_bytes_ - bytes_read_) {
    return MakeError(absl::StatusCode::kResourceExhausted, "CAPTURE_TOO_LARGE",
                     absl::StrCat(label_, ": more than ", max_bytes_,
                                  " bytes after decompression (limit max_decompressed_bytes)"));
  }
  bytes_read_ += *n;
  return n;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, const ReaderLimits& limits,
                                          uint64_t max_bytes) {
  ReaderLimits capped = limits;
  capped.max_decompressed_bytes = std::min(limits.max_decompressed_bytes, max_bytes);
  ASSIGN_OR_RETURN(auto input, InputFile::Open(path, capped));
  std::string text;
  std::vector<char> block(kBlock);
  for (;;) {
    ASSIGN_OR_RETURN(const size_t n, input->Read(block.data(), block.size()));
    if (n == 0) return text;
    text.append(block.data(), n);
  }
}

absl::StatusOr<std::string> ReadHead(const std::string& path, const ReaderLimits& limits,
                                     size_t max_bytes, absl::Status* end) {
  if (end != nullptr) *end = absl::OkStatus();
  ASSIGN_OR_RETURN(auto input, InputFile::Open(path, limits));
  std::string head(max_bytes, '\0');
  size_t have = 0;
  while (have < max_bytes) {
    absl::StatusOr<size_t> n = input->Read(head.data() + have, max_bytes - have);
    if (!n.ok()) {
      if (end == nullptr) return n.status();
      *end = n.status();
      break;
    }
    if (*n == 0) break;
    have += *n;
  }
  head.resize(have);
  return head;
}

absl::StatusOr<PlainFile> PlainFile::Make(const std::string& path, const ReaderLimits& limits,
                                          const std::string& directory) {
  ASSIGN_OR_RETURN(auto input, InputFile::Open(path, limits));
  if (input->compression() == Compression::kNone) return PlainFile(path, false);
  std::string folder = directory;
  if (folder.empty()) {
    const char* tmp = std::getenv("TMPDIR");
    folder = tmp != nullptr && *tmp != '\0' ? tmp : "/tmp";
  }
  std::string name = folder + "/solward-capture-XXXXXX";
  Descriptor out(::mkostemp(name.data(), O_CLOEXEC));
  if (out.get() < 0) {
    return MakeError(
        absl::StatusCode::kInternal, "TEMPORARY_FILE_FAILED",
        absl::StrCat(input->label(), ": no temporary file for decompression: ", strerror(errno)));
  }
  PlainFile plain(std::move(name), true);
  std::vector<char> block(kBlock);
  for (;;) {
    ASSIGN_OR_RETURN(const size_t n, input->Read(block.data(), block.size()));
    if (n == 0) return plain;
    for (size_t done = 0; done < n;) {
      const ssize_t written = ::write(out.get(), block.data() + done, n - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        return MakeError(absl::StatusCode::kResourceExhausted, "TEMPORARY_FILE_FAILED",
                         absl::StrCat(input->label(),
                                      ": writing the decompressed copy failed: ", strerror(errno)));
      }
      done += static_cast<size_t>(written);
    }
  }
}

PlainFile::PlainFile(PlainFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}

PlainFile& PlainFile::operator=(PlainFile&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::move(other.path_);
    temporary_ = std::exchange(other.temporary_, false);
  }
  return *this;
}

PlainFile::~PlainFile() { Remove(); }

void PlainFile::Remove() {
  if (temporary_) ::unlink(path_.c_str());
  temporary_ = false;
}

}  // namespace solward::readers
