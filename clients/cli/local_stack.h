// A private coordinator with its specialists for one command: real processes
// on Unix sockets below one folder, stopped when this object goes.
#ifndef SOLWARD_CLIENTS_CLI_LOCAL_STACK_H_
#define SOLWARD_CLIENTS_CLI_LOCAL_STACK_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace solward::cli {

// Not thread-safe. Start from the main thread: the children end with it, also
// when this process is killed.
class LocalStack {
 public:
  // `state_folder` is kept; empty: a temporary folder that is removed. The
  // programs are taken from the folder of this one. NOT_FOUND names a missing one.
  static absl::StatusOr<std::unique_ptr<LocalStack>> Start(const std::string& state_folder);
  ~LocalStack();
  LocalStack(const LocalStack&) = delete;
  LocalStack& operator=(const LocalStack&) = delete;

  const std::string& target() const { return target_; }
  // OK while all children run; else what ended and the end of its log.
  absl::Status CheckChildren();

 private:
  LocalStack(std::string folder, bool temporary);
  absl::Status Spawn(const std::string& program, const std::vector<std::string>& arguments);
  void StopChildren();

  struct Child {
    std::string program;
    std::string log_path;
    pid_t pid;
  };
  const std::string folder_;
  const bool temporary_;
  std::string target_;
  std::vector<Child> children_;
};

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_LOCAL_STACK_H_
