// solward: submit analyses and read their reports.
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <thread>

#include "clients/cli/commands.h"
#include "clients/cli/exit_code.h"
#include "common/status.h"

namespace solward::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the analysis failed or no capture could be used; 2 wrong option or "
    "refused request; 3 questions "
    "wait\n"
    "for an answer; 4 no coordinator answers; 5 cancelled or interrupted; 6 no such analysis,\n"
    "artifact or file; 7 a number of the report does not match its artifact.\n";

// Turns SIGINT and SIGTERM into a stop request; a second one ends at once.
// The signals must be blocked before any other thread starts.
class SignalWatcher {
 public:
  SignalWatcher() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::jthread([this](const std::stop_token& end) { Run(end); });
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Run(const std::stop_token& end) {
    while (!end.stop_requested()) {
      const timespec wait{.tv_sec = 0, .tv_nsec = 50'000'000};
      if (sigtimedwait(&signals_, nullptr, &wait) > 0) stop_.request_stop();
    }
  }
  sigset_t signals_;
  std::stop_source stop_;
  std::jthread thread_;
};

using Action = std::function<absl::Status(GlobalOptions&)>;

// What the chosen command runs; set by exactly one callback.
struct Chosen {
  Action run;
};

void AddOutputOptions(CLI::App* app, OutputOptions& output) {
  app->add_option("--lang", output.language, "Language of the report")
      ->check(CLI::IsMember({"en", "fr"}));
  app->add_option("--format", output.format, "md (Markdown) or json")
      ->check(CLI::IsMember({"md", "json"}));
  app->add_option("-o,--output", output.path, "File to write; default: standard output");
}

void AddAnalyze(CLI::App& app, AnalyzeCommand& command, Chosen& chosen) {
  CLI::App* sub = app.add_subcommand("analyze", "Analyse captures and print the report");
  sub->footer(
      "Example:\n  solward analyze --local --capture deploy/sample/bmm.ncu.raw.csv \\\n"
      "      --context \"B=32 M=512 N=1024 K=2048 dtype=fp16\" --metrics mfu,sol\n");
  AnalyzeOptions& request = command.request;
  sub->add_option("--capture", request.captures,
                  "Capture file: ncu CSV, nsys SQLite, torch trace, nvidia-smi output")
      ->required();
  sub->add_option("--metrics", request.metrics,
                  "Wanted metrics, comma-separated (solward metrics)");
  sub->add_option("--context", request.context,
                  "Problem context, key=value: B=32, dtype=fp16, flops_per_call=68.72GFLOP, "
                  "step_time=24ms, batch=16 ...");
  sub->add_option("--kernel", request.kernel, "Only kernels whose name matches this pattern (RE2)");
  sub->add_option("--region", request.region,
                  "cuda_profiler_api, profiler_step, nvtx:NAME, with ,skip=N ,max=N");
  sub->add_option("--statement", request.statement,
                  "The question in your own words, English or French");
  sub->add_option("--notes", request.notes, "Free text kept with the analysis");
  sub->add_option("--key", request.key, "Your key: a repeat returns the first analysis");
  AddOutputOptions(sub, command.output);
  sub->add_flag("--plan-only", command.plan_only, "Show what would be done and asked, run nothing");
  sub->add_flag("--detach", command.detach, "Print the analysis id and return");
  sub->add_flag("--local", command.local,
                "Run a private coordinator and specialists for this one analysis");
  sub->add_option("--state-dir", command.state_folder,
                  "With --local: keep the state in this folder instead of a temporary one");
  sub->callback(
      [&] { chosen.run = [&command](GlobalOptions& global) { return Analyze(global, command); }; });
}

// Values of the options of the small commands.
struct SmallOptions {
  std::string id, filter, metric, artifact, path, shell, language = "en";
  uint64_t after = 0;
  uint32_t limit = 50;
  std::vector<std::string> answers;
  OutputOptions output;
};

class CommandLine {
 public:
  CommandLine()
      : app_("Solward: GPU performance analysis, every number traced to its tool output") {
    app_.set_version_flag("--version", SOLWARD_VERSION);
    app_.require_subcommand(0, 1);
    app_.footer(kFooter);
    app_.add_option("--coordinator", global_.target,
                    "gRPC target; default: $SOLWARD_COORDINATOR or the default Unix socket");
    app_.add_option("--ca", global_.ca_file, "CA file (PEM) for a coordinator behind TLS");
    AddAnalyze(app_, analyze_, chosen_);
    AddAnalysisCommands();
    AddReportCommands();
    AddOtherCommands();
  }

  int Run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
      if (app_.get_subcommands().empty()) throw CLI::RequiredError("a command: see solward --help");
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kExitOk : kExitUsage;
    }
    SignalWatcher signals;
    global_.stop = signals.token();
    if (global_.target.empty()) global_.target = DefaultTarget();
    absl::Status status = chosen_.run(global_);
    if (global_.stop.stop_requested() && !status.ok()) status = absl::CancelledError("interrupted");
    if (!status.ok()) PrintError(status);
    return ExitCodeOf(status);
  }

 private:
  using Small = std::function<absl::Status(Connection&, const SmallOptions&)>;

  CLI::App* Add(const char* name, const char* description, const char* example, Small run) {
    CLI::App* sub = app_.add_subcommand(name, description);
    sub->footer(std::string("Example:\n  ") + example + "\n");
    sub->callback([this, run] {
      chosen_.run = [this, run](GlobalOptions& global) {
        Connection connection(global.target, global.ca_file, global.stop);
        return run(connection, small_);
      };
    });
    return sub;
  }
  void AddId(CLI::App* sub) { sub->add_option("id", small_.id, "Analysis id")->required(); }

  void AddAnalysisCommands() {
    CLI::App* watch =
        Add("watch", "Follow an analysis until it ends", "solward watch an-01J...",
            [](Connection& c, const SmallOptions& o) { return Watch(c, o.id, o.after); });
    AddId(watch);
    watch->add_option("--after", small_.after, "Only events after this sequence number");
    CLI::App* list = Add(
        "list", "List analyses, newest first", "solward list --filter state=SUCCEEDED --limit 20",
        [](Connection& c, const SmallOptions& o) { return List(c, o.filter, o.limit); });
    list->add_option("--filter", small_.filter, "state=..., class=..., since=..., joined by AND");
    list->add_option("--limit", small_.limit, "Most lines to print")->check(CLI::Range(1, 100000));
    AddId(Add("get", "Show one analysis", "solward get an-01J...",
              [](Connection& c, const SmallOptions& o) { return Get(c, o.id); }));
    CLI::App* answer = Add(
        "answer", "Answer the questions of an analysis",
        "solward answer an-01J... flops_missing flops_per_call=68.72GFLOP",
        [](Connection& c, const SmallOptions& o) { return AnswerQuestions(c, o.id, o.answers); });
    AddId(answer);
    answer->add_option("answers", small_.answers, "QUESTION_ID NAME=VALUE, or QUESTION_ID skip")
        ->required();
    AddId(Add("cancel", "Cancel an analysis", "solward cancel an-01J...",
              [](Connection& c, const SmallOptions& o) { return Cancel(c, o.id); }));
  }

  void AddReportCommands() {
    CLI::App* report = Add(
        "report", "Print the report of a finished analysis", "solward report an-01J... --lang fr",
        [](Connection& c, const SmallOptions& o) { return PrintReport(c, o.id, o.output); });
    AddId(report);
    AddOutputOptions(report, small_.output);
    CLI::App* kernels = Add(
        "kernels", "Kernels of an analysis by total time", "solward kernels an-01J... --limit 10",
        [](Connection& c, const SmallOptions& o) { return Kernels(c, o.id, o.limit); });
    AddId(kernels);
    kernels->add_option("--limit", small_.limit, "Most lines to print")->check(CLI::Range(1, 1000));
    CLI::App* explain =
        Add("explain", "Where a number of a report comes from", "solward explain an-01J... m3",
            [](Connection& c, const SmallOptions& o) { return Explain(c, o.id, o.metric); });
    AddId(explain);
    explain->add_option("metric", small_.metric, "Key in the report (m3) or metric id (mfu)")
        ->required();
    AddId(Add("verify", "Have every number of a report recomputed from its artifacts",
              "solward verify an-01J...",
              [](Connection& c, const SmallOptions& o) { return Verify(c, o.id); }));
  }

  void AddOtherCommands() {
    Add("specialists", "List the registered specialists", "solward specialists",
        [](Connection& c, const SmallOptions&) { return Specialists(c); });
    CLI::App* artifact =
        Add("artifact", "Fetch an artifact a report cites", "solward artifact ar-01J... -o bmm.csv",
            [](Connection& c, const SmallOptions& o) { return Artifact(c, o.artifact, o.path); });
    artifact->add_option("artifact", small_.artifact, "Artifact id")->required();
    artifact->add_option("-o,--output", small_.path, "File to write; default: standard output");
    CLI::App* metrics = Add("metrics", "List the metric catalogue", "solward metrics --lang fr",
                            [](Connection&, const SmallOptions& o) { return Metrics(o.language); });
    metrics->add_option("--lang", small_.language, "en or fr")->check(CLI::IsMember({"en", "fr"}));
    CLI::App* completion =
        Add("completion", "Print a shell completion script",
            "solward completion bash > ~/.local/share/bash-completion/completions/solward",
            [](Connection&, const SmallOptions& o) { return Completion(o.shell); });
    completion->add_option("shell", small_.shell, "bash, zsh or fish")->required();
  }

  static void PrintError(const absl::Status& status) {
    std::fprintf(stderr, "solward: %s\n", std::string(status.message()).c_str());
    for (const FieldViolation& violation : FieldViolations(status)) {
      std::fprintf(stderr, "  %s: %s\n", violation.field.c_str(), violation.description.c_str());
    }
  }

  CLI::App app_;
  GlobalOptions global_;
  AnalyzeCommand analyze_;
  SmallOptions small_;
  Chosen chosen_;
};

}  // namespace
}  // namespace solward::cli

int main(int argc, char** argv) { return solward::cli::CommandLine().Run(argc, argv); }
