#include "common/process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward {
namespace {

constexpr size_t kSmallFileBytes = 1 << 20;

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void DieWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent ended before the request was made: nobody is left to wait for.
  if (getppid() != parent) raise(SIGTERM);
}

void BlockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void UnblockStopSignals() {
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

int WaitForStopSignal() {
  const sigset_t signals = StopSignals();
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(absl::StatusCode::kNotFound, "FILE_NOT_READABLE",
                     absl::StrCat(path, ": no such file, or it cannot be read"));
  }
  std::string text(kSmallFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kSmallFileBytes) {
    return MakeError(absl::StatusCode::kInvalidArgument, "FILE_TOO_LARGE",
                     absl::StrCat(path, ": expected at most ", kSmallFileBytes, " bytes"));
  }
  return text;
}

}  // namespace solward
