// The commands of `solward`, one function each. Every one returns a Status;
// the exit code follows from it (exit_code.h).
#ifndef SOLWARD_CLIENTS_CLI_COMMANDS_H_
#define SOLWARD_CLIENTS_CLI_COMMANDS_H_

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/connection.h"
#include "clients/cli/request.h"

namespace solward::cli {

struct GlobalOptions {
  std::string target;
  std::string ca_file;
  std::stop_token stop;
};

struct OutputOptions {
  std::string language = "en";  // en, fr
  std::string format = "md";    // md, json
  std::string path;             // empty: stdout
};

struct AnalyzeCommand {
  AnalyzeOptions request;
  OutputOptions output;
  bool plan_only = false;
  bool detach = false;
  bool local = false;
  std::string state_folder;  // with local
};

absl::Status Analyze(const GlobalOptions& global, const AnalyzeCommand& command);
absl::Status Watch(Connection& connection, const std::string& id, uint64_t after);
absl::Status List(Connection& connection, const std::string& filter, uint32_t limit);
absl::Status Get(Connection& connection, const std::string& id);
absl::Status PrintReport(Connection& connection, const std::string& id,
                         const OutputOptions& output);
// Each answer: QUESTION_ID NAME=VALUE, or QUESTION_ID=skip.
absl::Status AnswerQuestions(Connection& connection, const std::string& id,
                             const std::vector<std::string>& answers);
absl::Status Cancel(Connection& connection, const std::string& id);
absl::Status Specialists(Connection& connection);
absl::Status Artifact(Connection& connection, const std::string& artifact_id,
                      const std::string& path);
absl::Status Kernels(Connection& connection, const std::string& id, uint32_t limit);
absl::Status Explain(Connection& connection, const std::string& id, const std::string& metric);
absl::Status Verify(Connection& connection, const std::string& id);
absl::Status Metrics(const std::string& language);
absl::Status Completion(const std::string& shell);

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_COMMANDS_H_
