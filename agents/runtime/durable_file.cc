#include "agents/runtime/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::runtime {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

int FileDescriptor::Release() { return std::exchange(fd_, -1); }

absl::Status FileError(absl::string_view what, absl::string_view path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                     absl::StrCat(what, " ", path, ": ", std::strerror(error),
                                  "; free space on the workspace's file system"));
  }
  return MakeError(absl::StatusCode::kInternal, "FILE_ERROR",
                   absl::StrCat(what, " ", path, ": ", std::strerror(error)));
}

absl::Status WriteAll(int fd, absl::string_view data, absl::string_view name) {
  while (!data.empty()) {
    const ssize_t written = write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError("cannot write", name, errno);
    }
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  if (path.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_PATH", "an empty folder name");
  }
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return FileError("cannot make the folder", part, errno);
    }
    if (slash == std::string::npos) break;
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return MakeError(absl::StatusCode::kInvalidArgument, "BAD_PATH",
                     absl::StrCat(path, " is not a folder"));
  }
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || fsync(folder.get()) != 0) return FileError("cannot sync", path, errno);
  return absl::OkStatus();
}

absl::Status WriteDurably(const std::string& path, absl::string_view data) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  {
    const FileDescriptor file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) return FileError("cannot create", temporary, errno);
    absl::Status written = WriteAll(file.get(), data, temporary);
    if (written.ok() && fsync(file.get()) != 0) written = FileError("cannot sync", path, errno);
    if (!written.ok()) {
      unlink(temporary.c_str());
      return written;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return FileError("cannot rename to", path, error);
  }
  return SyncFolder(path.substr(0, path.rfind('/')));
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t cap) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) {
    if (errno == ENOENT) return MakeError(absl::StatusCode::kNotFound, "NO_FILE", path);
    return FileError("cannot read", path, errno);
  }
  if (static_cast<uint64_t>(info.st_size) > cap) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "FILE_TOO_LARGE",
        absl::StrCat(path, " has ", info.st_size, " bytes, at most ", cap, " are expected"));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("cannot read", path, errno);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace solward::runtime
