// The main function of every specialist's process.
#ifndef SOLWARD_AGENTS_RUNTIME_AGENT_MAIN_H_
#define SOLWARD_AGENTS_RUNTIME_AGENT_MAIN_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "agents/runtime/specialist.h"

namespace solward::runtime {

// Reads the command line, serves until SIGINT or SIGTERM, returns the exit code
// (0 after a signal, 1 on an error, 2 on a wrong option). `short_name` is in
// the default paths.
int AgentMain(int argc, char** argv, absl::string_view short_name,
              const std::function<std::unique_ptr<Specialist>()>& make_specialist);

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_AGENT_MAIN_H_
