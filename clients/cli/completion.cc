#include "clients/cli/completion.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/metric_catalogue.h"
#include "common/status.h"

namespace solward::cli {
namespace {

constexpr char kCommands[] =
    "analyze watch list get report answer cancel specialists artifact kernels explain verify "
    "metrics completion";
constexpr char kAnalyzeOptions[] =
    "--capture --metrics --context --kernel --region --statement --notes --lang --format -o "
    "--plan-only --detach --key --local --state-dir";

std::string MetricIds() {
  std::vector<std::string> ids;
  for (const auto& metric : BuiltInCatalogue().metrics()) ids.push_back(metric.id);
  for (const auto& group : BuiltInCatalogue().groups()) ids.push_back(group.id);
  return absl::StrJoin(ids, " ");
}

std::string Bash() {
  return absl::StrCat(R"(_solward() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  case "$before" in
    --capture|-o|--state-dir|--config) compopt -o default; COMPREPLY=(); return;;
    --metrics) COMPREPLY=($(compgen -W ")",
                      MetricIds(), R"(" -- "$word")); return;;
    --lang) COMPREPLY=($(compgen -W "en fr" -- "$word")); return;;
    --format) COMPREPLY=($(compgen -W "md json" -- "$word")); return;;
    --region) COMPREPLY=($(compgen -W "cuda_profiler_api profiler_step nvtx: function:" -- "$word")); return;;
    completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ")",
                      kCommands, R"( --coordinator --help --version" -- "$word"))
  else
    COMPREPLY=($(compgen -W ")",
                      kAnalyzeOptions, R"( --help" -- "$word"))
  fi
}
complete -F _solward solward
)");
}

std::string Fish() {
  return absl::StrCat(
      "complete -c solward -n __fish_use_subcommand -f -a '", kCommands,
      "'\ncomplete -c solward -n '__fish_seen_subcommand_from analyze' -l capture -r\n"
      "complete -c solward -n '__fish_seen_subcommand_from analyze' -l metrics -x -a '",
      MetricIds(),
      "'\ncomplete -c solward -l lang -x -a 'en fr'\n"
      "complete -c solward -l format -x -a 'md json'\n");
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return Bash();
  if (shell == "zsh") {
    return absl::StrCat("autoload -U +X bashcompinit && bashcompinit\n", Bash());
  }
  if (shell == "fish") return Fish();
  return MakeError(absl::StatusCode::kInvalidArgument, "USAGE",
                   absl::StrCat("completion ", shell, ": expected bash, zsh or fish"));
}

}  // namespace solward::cli
