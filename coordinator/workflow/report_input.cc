#include "coordinator/workflow/report_input.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/metric.h"
#include "common/status.h"
#include "coordinator/workflow/kernel_names.h"

namespace solward::workflow {
namespace {

absl::string_view KernelOf(const v1::Metric& metric) {
  const absl::string_view name = metric.scope().name();
  return name.substr(0, name.find('|'));
}

bool IsAllStalls(const v1::Metric& metric) { return absl::EndsWith(metric.scope().name(), "|all"); }

}  // namespace

Sentence::Sentence(absl::string_view message_id) {
  statement_.set_message_id(std::string(message_id));
}

Sentence& Sentence::Metric(const std::string& name, absl::string_view key) {
  (*statement_.mutable_arguments())[name].set_metric_key(std::string(key));
  return *this;
}

Sentence& Sentence::Name(const std::string& name, absl::string_view text) {
  (*statement_.mutable_arguments())[name].set_name(std::string(text));
  return *this;
}

Sentence& Sentence::Term(const std::string& name, absl::string_view term) {
  (*statement_.mutable_arguments())[name].set_term(std::string(term));
  return *this;
}

Sentence& Sentence::Quote(const std::string& name, absl::string_view text) {
  (*statement_.mutable_arguments())[name].set_quotation(std::string(text));
  return *this;
}

ReportInput::ReportInput(const v1::Understanding& understanding, const v1::Measurement& measurement,
                         const v1::Classification& classification, const Knowledge& knowledge)
    : understanding_(understanding),
      measurement_(measurement),
      classification_(classification),
      knowledge_(knowledge) {
  for (const v1::Metric& metric : measurement.metrics()) Add(metric);
  for (const v1::Metric& metric : classification.metrics()) Add(metric);
}

void ReportInput::Add(const v1::Metric& metric) {
  metrics_.push_back(&metric);
  by_key_.emplace(metric.key(), &metric);
  if (metric.scope().kind() == v1::SCOPE_KIND_KERNEL && !metric.scope().name().empty()) {
    by_kernel_[NormalKernelName(KernelOf(metric))].push_back(&metric);
  }
}

const v1::Metric* ReportInput::Find(absl::string_view key) const {
  auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : it->second;
}

const v1::Metric* ReportInput::Find(absl::string_view id, v1::ScopeKind kind, int device,
                                    int rank) const {
  for (const v1::Metric* metric : metrics_) {
    const v1::Scope& scope = metric->scope();
    if (metric->id() == id && scope.kind() == kind && scope.name().empty() &&
        Fits(scope.device(), device) && Fits(scope.rank(), rank)) {
      return metric;
    }
  }
  return nullptr;
}

const v1::Metric* ReportInput::FindAny(absl::string_view id) const {
  for (const v1::Metric* metric : metrics_) {
    if (metric->id() == id) return metric;
  }
  return nullptr;
}

const v1::Metric* ReportInput::FindOfKernel(absl::string_view id, absl::string_view kernel,
                                            int device, int rank) const {
  auto it = by_kernel_.find(NormalKernelName(kernel));
  if (it == by_kernel_.end()) return nullptr;
  const v1::Metric* fitting = nullptr;
  for (const v1::Metric* metric : it->second) {
    if (metric->id() != id || IsAllStalls(*metric)) continue;
    const v1::Scope& scope = metric->scope();
    if (scope.device() == device && scope.rank() == rank) return metric;
    if (fitting == nullptr && Fits(scope.device(), device) && Fits(scope.rank(), rank)) {
      fitting = metric;
    }
  }
  return fitting;
}

const v1::Metric* ReportInput::TopStall(absl::string_view kernel) const {
  auto it = by_kernel_.find(NormalKernelName(kernel));
  if (it == by_kernel_.end()) return nullptr;
  const v1::Metric* top = nullptr;
  for (const v1::Metric* metric : it->second) {
    if (metric->id() != "warp_stall" || IsAllStalls(*metric)) continue;
    if (top == nullptr || metric->value() > top->value()) top = metric;
  }
  return top;
}

const v1::Metric* ReportInput::InputOf(const v1::Metric& metric, absl::string_view name) const {
  for (const v1::DerivedInput& input : metric.provenance().derived().inputs()) {
    if (input.name() == name) return Find(input.metric_key());
  }
  return nullptr;
}

absl::StatusOr<const v1::Metric*> ReportInput::Derive(
    absl::string_view formula_id, const v1::Scope& scope,
    const std::vector<std::pair<std::string, const v1::Metric*>>& inputs) {
  std::deque<solward::Metric> checked;
  std::vector<std::pair<std::string, const solward::Metric*>> named;
  for (const auto& [name, metric] : inputs) {
    ASSIGN_OR_RETURN(solward::Metric input,
                     solward::Metric::FromProto(knowledge_.catalogue, *metric));
    checked.push_back(std::move(input));
    named.emplace_back(name, &checked.back());
  }
  ASSIGN_OR_RETURN(const solward::Metric derived,
                   solward::Metric::Derive(knowledge_.catalogue, formula_id, scope, named));
  made_here_.push_back(derived.proto());
  v1::Metric& metric = made_here_.back();
  metric.set_key(absl::StrCat("report", made_here_.size()));
  Add(metric);
  return &metric;
}

std::string ReportInput::PlaceName(int device, int rank) {
  std::string place = device >= 0 ? absl::StrCat("GPU ", device) : "";
  if (rank >= 0) absl::StrAppend(&place, place.empty() ? "" : " ", "rank ", rank);
  return place;
}

std::string ReportInput::BaseTerm(const v1::Metric& share) {
  if (share.id() == "limit_time_share" || share.id() == "kernel_time_share") return "base.kernels";
  return share.scope().kind() == v1::SCOPE_KIND_STEP ? "base.step" : "base.window";
}

std::string ClassWord(v1::BottleneckClass bottleneck_class) {
  absl::string_view name = v1::BottleneckClass_Name(bottleneck_class);
  absl::ConsumePrefix(&name, "BOTTLENECK_CLASS_");
  return absl::AsciiStrToLower(name);
}

bool IsUndetermined(v1::BottleneckClass bottleneck_class) {
  return bottleneck_class == v1::BOTTLENECK_CLASS_UNSPECIFIED ||
         bottleneck_class >= v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS;
}

bool IsKernelClass(v1::BottleneckClass bottleneck_class) {
  return bottleneck_class == v1::BOTTLENECK_CLASS_COMPUTE_BOUND ||
         bottleneck_class == v1::BOTTLENECK_CLASS_MEMORY_BOUND ||
         bottleneck_class == v1::BOTTLENECK_CLASS_LATENCY_BOUND;
}

}  // namespace solward::workflow
