#include "coordinator/workflow/understand_request.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/gpu_peaks.h"
#include "common/outcome_lint.h"
#include "common/problem_context.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/workflow/flops.h"

namespace solward::workflow::internal {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMaxStatement = 16 * kKiB;
constexpr size_t kMaxNote = 4 * kKiB;
constexpr size_t kMaxSnippet = 256 * kKiB;
constexpr size_t kMaxName = 4 * kKiB;
constexpr int kMaxCaptures = 256;
constexpr int kMaxMetrics = 256;
constexpr int kMaxArguments = 1024;
constexpr int kMaxOperations = 64;
constexpr int kMaxDimensions = 32;

// --- checks ------------------------------------------------------------------

// Collects violations; fields are named as in the contract.
class Checker {
 public:
  // A status travels in gRPC's trailers, which hold about 8 KiB.
  void Add(const std::string& field, const std::string& what) {
    constexpr size_t kMost = 16;
    if (++count_ > kMost) return;
    violations_.push_back({Truncate(CleanUtf8(field), 100), Truncate(CleanUtf8(what), 200)});
  }

  void Size(const std::string& field, size_t bytes, size_t most) {
    if (bytes > most) {
      Add(field, absl::StrCat("expected at most ", most, " bytes, found ", bytes));
    }
  }

  void Count(const std::string& field, int count, int most) {
    if (count > most) Add(field, absl::StrCat("expected at most ", most, ", found ", count));
  }

  void Figure(const std::string& field, bool has, const v1::GivenNumber& number, double least) {
    if (has && (!std::isfinite(number.value()) || number.value() < least || number.value() <= 0)) {
      Add(field, absl::StrCat("expected a number ",
                              least > 0 ? absl::StrCat("of at least ", least) : "above 0",
                              ", found ", number.value()));
    }
  }

  absl::Status Result() const {
    if (violations_.empty()) return absl::OkStatus();
    return MakeBadRequest(
        "REQUEST_INVALID",
        absl::StrCat(violations_.front().field, ": ", violations_.front().description,
                     count_ > 1 ? absl::StrCat(" (and ", count_ - 1, " more)") : ""),
        violations_);
  }

 private:
  std::vector<FieldViolation> violations_;
  size_t count_ = 0;
};

void CheckEnvironment(const std::string& field,
                      const google::protobuf::Map<std::string, std::string>& environment,
                      Checker& check) {
  check.Count(field, static_cast<int>(environment.size()), kMaxArguments);
  for (const auto& [name, value] : environment) {
    if (name.empty() || name.find('=') != std::string::npos) {
      check.Add(field, absl::StrCat("expected a variable's name, found \"", name, "\""));
    }
    check.Size(field, name.size() + value.size(), 64 * kKiB);
  }
}

void CheckCommand(const v1::Command& command, Checker& check) {
  if (command.argv().empty() || command.argv(0).empty()) {
    check.Add("request.workload.command.argv", "expected a program, found none");
  }
  check.Count("request.workload.command.argv", command.argv_size(), kMaxArguments);
  size_t bytes = 0;
  for (const std::string& argument : command.argv()) bytes += argument.size();
  check.Size("request.workload.command.argv", bytes, 128 * kKiB);
  check.Size("request.workload.command.working_directory", command.working_directory().size(),
             kMaxName);
  CheckEnvironment("request.workload.command.environment", command.environment(), check);
}

void CheckSourceFile(const v1::SourceFile& file, Checker& check) {
  if (file.path().empty()) {
    check.Add("request.workload.source_file.path", "expected a path, found none");
  }
  check.Size("request.workload.source_file.path", file.path().size(), kMaxName);
  check.Count("request.workload.source_file.arguments", file.arguments_size(), kMaxArguments);
  CheckEnvironment("request.workload.source_file.environment", file.environment(), check);
}

void CheckSnippet(const v1::Snippet& snippet, Checker& check) {
  if (snippet.text().empty()) {
    check.Add("request.workload.snippet.text", "expected source text, found none");
  }
  if (snippet.language() == v1::LANGUAGE_UNSPECIFIED || !v1::Language_IsValid(snippet.language())) {
    check.Add("request.workload.snippet.language", "expected PYTHON, CUDA_CPP or BASH");
  }
  check.Size("request.workload.snippet.text", snippet.text().size(), kMaxSnippet);
}

void CheckWorkload(const v1::Workload& workload, Checker& check) {
  check.Size("request.workload.description", workload.description().size(), kMaxNote);
  switch (workload.what_case()) {
    case v1::Workload::kCommand:
      CheckCommand(workload.command(), check);
      break;
    case v1::Workload::kSourceFile:
      CheckSourceFile(workload.source_file(), check);
      break;
    case v1::Workload::kSnippet:
      CheckSnippet(workload.snippet(), check);
      break;
    case v1::Workload::kCaptures:
      check.Count("request.workload.captures", workload.captures().captures_size(), kMaxCaptures);
      for (int i = 0; i < workload.captures().captures_size(); ++i) {
        if (workload.captures().captures(i).id().empty()) {
          check.Add(absl::StrCat("request.workload.captures[", i, "].id"),
                    "expected the id of an uploaded capture, found none");
        }
      }
      break;
    case v1::Workload::WHAT_NOT_SET:
      break;  // asked for
  }
}

void CheckContext(const v1::ProblemContext& context, Checker& check) {
  const std::string at = "request.context.";
  check.Figure(at + "flops_per_call", context.has_flops_per_call(), context.flops_per_call(), 0);
  check.Figure(at + "flops_per_step", context.has_flops_per_step(), context.flops_per_step(), 0);
  check.Figure(at + "step_time", context.has_step_time(), context.step_time(), 0);
  check.Figure(at + "batch_size", context.has_batch_size(), context.batch_size(), 1);
  check.Figure(at + "sequence_length", context.has_sequence_length(), context.sequence_length(), 1);
  check.Figure(at + "world_size", context.has_world_size(), context.world_size(), 1);
  check.Figure(at + "calls_per_step", context.has_calls_per_step(), context.calls_per_step(), 1);
  check.Figure(at + "parameters", context.has_parameters(), context.parameters(), 1);
  check.Size(at + "gpu_name", context.gpu_name().size(), 256);
  if (!v1::Dtype_IsValid(context.dtype())) check.Add(at + "dtype", "expected a known dtype");
  check.Count(at + "operations", context.operations_size(), kMaxOperations);
  for (int i = 0; i < context.operations_size(); ++i) {
    const v1::Operation& operation = context.operations(i);
    const std::string field = absl::StrCat(at, "operations[", i, "]");
    if (!v1::OperationKind_IsValid(operation.kind())) check.Add(field, "expected a known kind");
    check.Count(field + ".dimensions", static_cast<int>(operation.dimensions().size()),
                kMaxDimensions);
    for (const auto& [name, value] : operation.dimensions()) {
      check.Size(field + ".dimensions", name.size(), 32);
      const int64_t least = name == "padding" ? 0 : 1;
      if (value < least || value > (int64_t{1} << 53)) {
        check.Add(field + ".dimensions." + name,
                  absl::StrCat("expected ", least, " to 2^53, found ", value));
      }
    }
  }
}

void CheckConstraints(const v1::AnalysisRequest& request, Checker& check) {
  const v1::Constraints& constraints = request.constraints();
  check.Size("request.constraints.kernel_pattern", constraints.kernel_pattern().size(), kKiB);
  const RE2 pattern(constraints.kernel_pattern().substr(0, kKiB), RE2::Quiet);
  if (!pattern.ok()) {
    check.Add("request.constraints.kernel_pattern",
              absl::StrCat("expected an RE2 pattern, found \"",
                           constraints.kernel_pattern().substr(0, 80), "\": ", pattern.error()));
  }
  for (const int device : constraints.devices()) {
    if (device < 0)
      check.Add("request.constraints.devices", absl::StrCat("expected an ordinal, found ", device));
  }
  for (const int rank : constraints.ranks()) {
    if (rank < 0)
      check.Add("request.constraints.ranks", absl::StrCat("expected a rank, found ", rank));
  }
  if (constraints.has_time_budget() && constraints.time_budget().seconds() <= 0 &&
      constraints.time_budget().nanos() <= 0) {
    check.Add("request.constraints.time_budget", "expected a time above 0");
  }
  const v1::Region& region = request.region();
  if (region.has_nvtx_range() && region.nvtx_range().empty()) {
    check.Add("request.region.nvtx_range", "expected the range's name, found none");
  }
  check.Size("request.region.nvtx_range", region.nvtx_range().size(), kKiB);
  check.Size("request.region.function", region.function().size(), kKiB);
}

void CheckMetrics(const v1::AnalysisRequest& request, Checker& check) {
  check.Count("request.desired_metrics", request.desired_metrics_size(), kMaxMetrics);
  for (int i = 0; i < request.desired_metrics_size(); ++i) {
    const v1::DesiredMetric& metric = request.desired_metrics(i);
    const std::string field = absl::StrCat("request.desired_metrics[", i, "]");
    if (metric.id().empty()) check.Add(field + ".id", "expected a metric's id, found none");
    check.Size(field + ".id", metric.id().size(), 128);
    if (!v1::ScopeKind_IsValid(metric.scope()))
      check.Add(field + ".scope", "expected a known scope");
  }
}

}  // namespace

absl::Status ValidateRequest(const v1::AnalysisRequest& request) {
  Checker check;
  check.Size("request.statement", request.statement().size(), kMaxStatement);
  check.Size("request.notes", request.notes().size(), kMaxNote);
  CheckWorkload(request.workload(), check);
  CheckContext(request.context(), check);
  CheckConstraints(request, check);
  CheckMetrics(request, check);
  RETURN_IF_ERROR(check.Result());
  return LintFields({{"request.statement", request.statement()},
                     {"request.notes", request.notes()},
                     {"request.workload.description", request.workload().description()}});
}

// --- merging -----------------------------------------------------------------

std::string RegionText(const v1::Region& region) {
  switch (region.marker_case()) {
    case v1::Region::kCudaProfilerApi:
      return "cuda_profiler_api";
    case v1::Region::kNvtxRange:
      return absl::StrCat("nvtx:", region.nvtx_range());
    case v1::Region::kProfilerStep:
      return "profiler_step";
    case v1::Region::kFunction:
      return absl::StrCat("function:", region.function());
    case v1::Region::MARKER_NOT_SET:
      return "";
  }
  return "";
}

absl::Status ParseRegion(absl::string_view text, v1::Region& region) {
  absl::string_view name = text;
  if (text == "cuda_profiler_api") {
    region.set_cuda_profiler_api(true);
  } else if (text == "profiler_step") {
    region.set_profiler_step(true);
  } else if (absl::ConsumePrefix(&name, "nvtx:") && !name.empty()) {
    region.set_nvtx_range(std::string(name));
  } else if (name = text; absl::ConsumePrefix(&name, "function:") && !name.empty()) {
    region.set_function(std::string(name));
  } else {
    return MakeError(absl::StatusCode::kInvalidArgument, "REGION_INVALID",
                     absl::StrCat("region: expected cuda_profiler_api, profiler_step, nvtx:NAME or "
                                  "function:NAME, found \"",
                                  text.substr(0, 80), "\""));
  }
  return absl::OkStatus();
}

namespace {

class Merger {
 public:
  Merger(const StatementContent& content, const Knowledge& knowledge, v1::AnalysisRequest& request)
      : content_(content), knowledge_(knowledge), request_(request) {}

  std::vector<Conflict> Merge() {
    for (const StatedTwice& twice : content_.twice) {
      if (IsInFields(twice.name)) continue;  // the field wins, whatever was said twice
      conflicts_.push_back({twice.name, {twice.first, twice.second}, true});
    }
    MergeMetrics();
    MergeFigures();
    MergeOperation();
    MergeWords();
    MergeRegion();
    MergeKernel();
    MergeFile();
    return std::move(conflicts_);
  }

 private:
  v1::ProblemContext& Context() { return *request_.mutable_context(); }

  void Disagree(const std::string& name, std::string kept, std::string stated) {
    for (const Conflict& conflict : conflicts_) {
      if (conflict.name == name) return;
    }
    conflicts_.push_back({name, {std::move(kept), std::move(stated)}, false});
  }

  void MergeMetrics() {
    for (const auto* ids : {&content_.metrics, &content_.unit_metrics}) {
      for (const std::string& id : *ids) {
        const bool known =
            std::any_of(request_.desired_metrics().begin(), request_.desired_metrics().end(),
                        [&](const v1::DesiredMetric& metric) { return metric.id() == id; });
        if (!known) request_.add_desired_metrics()->set_id(id);
      }
    }
  }

  bool IsInFields(const std::string& name) const {
    const v1::ProblemContext& context = request_.context();
    if (name == "dtype") return context.dtype() != v1::DTYPE_UNSPECIFIED;
    if (name == "region") return request_.region().marker_case() != v1::Region::MARKER_NOT_SET;
    if (name == "flops_per_call") return context.has_flops_per_call();
    if (name == "flops_per_step") return context.has_flops_per_step();
    if (name == "step_time") return context.has_step_time();
    if (name == "batch_size") return context.has_batch_size();
    if (name == "sequence_length") return context.has_sequence_length();
    if (name == "world_size") return context.has_world_size();
    if (name == "calls_per_step") return context.has_calls_per_step();
    if (name == "parameters") return context.has_parameters();
    return !context.operations().empty() && context.operations(0).dimensions().count(name) > 0;
  }

  // `tolerance` is a share of the larger value.
  void MergeFigure(const std::string& name, const std::optional<StatedFigure>& stated, bool has,
                   v1::GivenNumber* (v1::ProblemContext::*field)(), const char* unit, double scale,
                   double tolerance) {
    if (!stated) return;
    v1::GivenNumber& number = *(Context().*field)();
    if (!has) {
      number.set_value(stated->value);
      number.set_field("statement");
      number.set_text(stated->text);
      return;
    }
    const double difference = std::abs(number.value() - stated->value);
    if (difference <= tolerance * std::max(std::abs(number.value()), std::abs(stated->value))) {
      return;
    }
    Disagree(name, absl::StrCat(number.value() * scale, unit),
             absl::StrCat(stated->value * scale, unit));
  }

  void MergeFigures() {
    const double flops = knowledge_.parameters.flops_disagreement_percent / 100;
    const v1::ProblemContext before = request_.context();
    using Ctx = v1::ProblemContext;
    MergeFigure("flops_per_call", content_.flops_per_call, before.has_flops_per_call(),
                &Ctx::mutable_flops_per_call, " GFLOP", 1e-9, flops);
    MergeFigure("flops_per_step", content_.flops_per_step, before.has_flops_per_step(),
                &Ctx::mutable_flops_per_step, " GFLOP", 1e-9, flops);
    MergeFigure("step_time", content_.step_time, before.has_step_time(), &Ctx::mutable_step_time,
                " ms", 1e3, 0.01);
    MergeFigure("batch", content_.batch_size, before.has_batch_size(), &Ctx::mutable_batch_size, "",
                1, 0);
    MergeFigure("sequence", content_.sequence_length, before.has_sequence_length(),
                &Ctx::mutable_sequence_length, "", 1, 0);
    MergeFigure("world_size", content_.world_size, before.has_world_size(),
                &Ctx::mutable_world_size, "", 1, 0);
    MergeFigure("calls_per_step", content_.calls_per_step, before.has_calls_per_step(),
                &Ctx::mutable_calls_per_step, "", 1, 0);
    MergeFigure("parameters", content_.parameters, before.has_parameters(),
                &Ctx::mutable_parameters, "", 1, 0.01);
  }

  void MergeOperation() {
    const bool stated = !content_.dimensions.empty() || content_.causal || content_.backward ||
                        content_.operation != v1::OPERATION_KIND_UNSPECIFIED;
    if (!stated) return;
    const bool fresh = request_.context().operations().empty();
    v1::Operation& operation =
        fresh ? *Context().add_operations() : *Context().mutable_operations(0);
    if (fresh) operation.set_field("statement");
    if (content_.operation != v1::OPERATION_KIND_UNSPECIFIED) {
      if (operation.kind() != v1::OPERATION_KIND_UNSPECIFIED) {
        if (!SameKind(operation.kind(), content_.operation)) {
          Disagree("operation", std::string(OperationKindName(operation.kind())),
                   std::string(OperationKindName(content_.operation)));
        }
      } else if (KindOf(operation) == v1::OPERATION_KIND_UNSPECIFIED) {
        operation.set_kind(content_.operation);
      }
    }
    for (const auto& [name, value] : content_.dimensions) {
      const auto [known, added] = operation.mutable_dimensions()->insert({name, value});
      if (!added && known->second != value) {
        Disagree(name, absl::StrCat(known->second), absl::StrCat(value));
      }
    }
    if (fresh) operation.set_text(content_.dimensions_text);
    if (content_.causal) operation.set_causal(true);
    if (content_.backward) operation.set_backward(true);
  }

  static bool SameKind(v1::OperationKind a, v1::OperationKind b) {
    const auto gemm = [](v1::OperationKind kind) {
      return kind == v1::OPERATION_KIND_GEMM || kind == v1::OPERATION_KIND_BATCHED_GEMM;
    };
    return a == b || (gemm(a) && gemm(b));
  }

  void MergeWords() {
    if (content_.dtype != v1::DTYPE_UNSPECIFIED) {
      const v1::Dtype known = request_.context().dtype();
      if (known == v1::DTYPE_UNSPECIFIED) {
        Context().set_dtype(content_.dtype);
      } else if (known != content_.dtype) {
        Disagree("dtype", std::string(DtypeName(known)), std::string(DtypeName(content_.dtype)));
      }
    }
    if (content_.mode != v1::TRAINING_MODE_UNSPECIFIED) {
      const v1::TrainingMode known = request_.context().mode();
      if (known == v1::TRAINING_MODE_UNSPECIFIED) {
        Context().set_mode(content_.mode);
      } else if (known != content_.mode) {
        const bool trains = known == v1::TRAINING_MODE_TRAINING;
        Disagree("mode", trains ? "training" : "inference", trains ? "inference" : "training");
      }
    }
  }

  void MergeRegion() {
    if (!content_.region) return;
    v1::Region& region = *request_.mutable_region();
    if (region.marker_case() == v1::Region::MARKER_NOT_SET) {
      const uint32_t skip = region.skip_steps(), most = region.max_steps();
      region = *content_.region;
      if (skip > 0) region.set_skip_steps(skip);
      region.set_max_steps(most);
      return;
    }
    if (region.skip_steps() == 0) region.set_skip_steps(content_.region->skip_steps());
    if (content_.region->marker_case() != v1::Region::MARKER_NOT_SET &&
        RegionText(region) != RegionText(*content_.region)) {
      Disagree("region", RegionText(region), RegionText(*content_.region));
    }
  }

  void MergeKernel() {
    if (content_.kernel_pattern.empty()) return;
    v1::Constraints& constraints = *request_.mutable_constraints();
    if (constraints.kernel_pattern().empty()) {
      constraints.set_kernel_pattern(content_.kernel_pattern);
    } else if (!RE2::PartialMatch(content_.kernel_pattern,
                                  RE2(constraints.kernel_pattern(), RE2::Quiet)) &&
               constraints.kernel_pattern() != content_.kernel_pattern) {
      Disagree("kernel", constraints.kernel_pattern(), content_.kernel_pattern);
    }
  }

  // The one program a statement names is the workload when no other is given.
  void MergeFile() {
    if (request_.workload().what_case() != v1::Workload::WHAT_NOT_SET) return;
    static const RE2 runnable(R"(.*\.(?:py|cu|sh|ipynb))");
    std::vector<std::string> programs;
    for (const std::string& file : content_.files) {
      if (RE2::FullMatch(file, runnable)) programs.push_back(file);
    }
    if (programs.size() == 1) {
      request_.mutable_workload()->mutable_source_file()->set_path(programs.front());
    }
  }

  const StatementContent& content_;
  const Knowledge& knowledge_;
  v1::AnalysisRequest& request_;
  std::vector<Conflict> conflicts_;
};

}  // namespace

std::vector<Conflict> MergeStatement(const StatementContent& content, const Knowledge& knowledge,
                                     v1::AnalysisRequest& request) {
  return Merger(content, knowledge, request).Merge();
}

}  // namespace solward::workflow::internal
