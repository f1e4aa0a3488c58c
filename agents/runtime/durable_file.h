// Small files that are there whole or not at all, also after a power cut.
#ifndef SOLWARD_AGENTS_RUNTIME_DURABLE_FILE_H_
#define SOLWARD_AGENTS_RUNTIME_DURABLE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace solward::runtime {

// A file descriptor that is closed once.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();

 private:
  int fd_;
};

// INTERNAL with the system's words, RESOURCE_EXHAUSTED (DISK_FULL) for a full
// disk or quota. `path` is for the log of this machine: callers that answer a
// client pass a name instead.
absl::Status FileError(absl::string_view what, absl::string_view path, int error);

// Writes all of `data`, over short writes and interrupts. `name` for the error.
absl::Status WriteAll(int fd, absl::string_view data, absl::string_view name);

// mkdir -p with mode 0700 for what it makes.
absl::Status MakeFolders(const std::string& path);

// Makes the entries of a folder durable.
absl::Status SyncFolder(const std::string& path);

// Writes beside `path`, fsyncs, renames over it, fsyncs the folder. Mode 0600.
absl::Status WriteDurably(const std::string& path, absl::string_view data);

// The whole file; NOT_FOUND, or RESOURCE_EXHAUSTED when it is larger than `cap` bytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t cap);

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_DURABLE_FILE_H_
