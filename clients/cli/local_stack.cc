#include "clients/cli/local_stack.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kGrace = std::chrono::seconds(3);
constexpr auto kPoll = std::chrono::milliseconds(2);

absl::StatusOr<std::string> ProgramBesideThisOne(const std::string& name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = self.parent_path() / name;
  if (error || access(program.c_str(), X_OK) != 0) {
    return MakeError(absl::StatusCode::kNotFound, "PROGRAM_NOT_FOUND",
                     absl::StrCat("--local needs ", name, " beside solward (looked for ",
                                  program.string(), "); install the whole bundle"));
  }
  return program.string();
}

absl::StatusOr<std::string> MakeFolder(const std::string& state_folder) {
  if (!state_folder.empty()) {
    std::error_code error;
    fs::create_directories(state_folder, error);
    const fs::path absolute = fs::absolute(state_folder, error);
    if (error) {
      return MakeError(absl::StatusCode::kPermissionDenied, "STATE_FOLDER",
                       absl::StrCat(state_folder, ": cannot be made: ", error.message()));
    }
    // The longest socket name below must fit into sockaddr_un.
    if (absolute.string().size() + 20 > sizeof(sockaddr_un::sun_path)) {
      return MakeError(absl::StatusCode::kInvalidArgument, "STATE_FOLDER_TOO_LONG",
                       absl::StrCat(state_folder,
                                    ": too long for a Unix socket; choose a folder "
                                    "with a path of at most 85 bytes"));
    }
    return absolute.string();
  }
  const char* base = std::getenv("TMPDIR");
  std::string pattern =
      absl::StrCat(base != nullptr && std::strlen(base) < 60 ? base : "/tmp", "/solward-XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return MakeError(absl::StatusCode::kPermissionDenied, "TEMPORARY_FOLDER",
                     absl::StrCat(pattern, ": cannot be made: ", std::strerror(errno)));
  }
  return pattern;
}

std::string EndOfFile(const std::string& path, size_t bytes) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  return all.size() > bytes ? all.substr(all.size() - bytes) : all;
}

}  // namespace

LocalStack::LocalStack(std::string folder, bool temporary)
    : folder_(std::move(folder)),
      temporary_(temporary),
      target_(absl::StrCat("unix:", folder_, "/c.sock")) {}

absl::StatusOr<std::unique_ptr<LocalStack>> LocalStack::Start(const std::string& state_folder) {
  ASSIGN_OR_RETURN(std::string folder, MakeFolder(state_folder));
  std::unique_ptr<LocalStack> stack(new LocalStack(folder, state_folder.empty()));
  RETURN_IF_ERROR(stack->Spawn(
      "solward-coordinator", {"--listen", stack->target_, "--state-dir", folder + "/coordinator"}));
  for (const auto& [program, name] :
       {std::pair("solward-profiling-agent", "p"), std::pair("solward-cuda-graph-agent", "g")}) {
    RETURN_IF_ERROR(stack->Spawn(
        program, {"--listen", absl::StrCat("unix:", folder, "/", name, ".sock"), "--workspace",
                  absl::StrCat(folder, "/", program), "--coordinator", stack->target_}));
  }
  return stack;
}

absl::Status LocalStack::Spawn(const std::string& program,
                               const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const std::string path, ProgramBesideThisOne(program));
  std::vector<std::string> words = {path, "--die-with-parent"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const std::string log_path = absl::StrCat(folder_, "/", program, ".log");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_path.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // Their own process group: Ctrl-C goes to this process, which stops them in order.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return MakeError(absl::StatusCode::kInternal, "SPAWN_FAILED",
                     absl::StrCat(path, ": cannot be started: ", std::strerror(error)));
  }
  children_.push_back({program, log_path, pid});
  return absl::OkStatus();
}

absl::Status LocalStack::CheckChildren() {
  for (Child& child : children_) {
    int status = 0;
    if (child.pid > 0 && waitpid(child.pid, &status, WNOHANG) == child.pid) {
      child.pid = -1;
      return MakeError(absl::StatusCode::kInternal, "LOCAL_PROCESS_ENDED",
                       absl::StrCat(child.program, " ended early; the end of its log:\n",
                                    EndOfFile(child.log_path, 2000)));
    }
  }
  return absl::OkStatus();
}

void LocalStack::StopChildren() {
  // Agents first, so that they can leave the registry.
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->pid > 0) kill(child->pid, SIGTERM);
  }
  const auto end = std::chrono::steady_clock::now() + kGrace;
  for (Child& child : children_) {
    while (child.pid > 0) {
      if (waitpid(child.pid, nullptr, WNOHANG) != 0) break;
      if (std::chrono::steady_clock::now() >= end) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(kPoll);
    }
    child.pid = -1;
  }
}

LocalStack::~LocalStack() {
  StopChildren();
  std::error_code ignored;
  if (temporary_) fs::remove_all(folder_, ignored);
}

}  // namespace solward::cli
