#include "agents/profiling/counter_metrics.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "agents/profiling/counter_catalogue.h"
#include "agents/profiling/kernel_filter.h"
#include "common/status.h"

namespace solward::profiling {
namespace {

using readers::CounterLaunch;
using readers::CounterReport;
using readers::CounterRule;

// Stall metrics, some 35 a kernel, are made for the longest kernels only.
constexpr size_t kKernelsWithStalls = 20;

// Launches of one function name on one device.
struct Kernel {
  std::string name;
  int32_t device = 0;
  std::vector<const CounterLaunch*> launches;
  double total_ns = 0;
};

std::vector<Kernel> GroupByKernel(const CounterReport& report, const KernelFilter& filter) {
  std::vector<Kernel> kernels;
  std::map<std::pair<int32_t, absl::string_view>, size_t> index;
  for (const CounterLaunch& launch : report.launches) {
    if (!filter.Wants(launch.device) || !filter.Wants(launch.kernel)) continue;
    auto [found, inserted] =
        index.emplace(std::pair(launch.device, absl::string_view(launch.kernel)), kernels.size());
    if (inserted) kernels.push_back({launch.kernel, launch.device, {}, 0});
    Kernel& kernel = kernels[found->second];
    kernel.launches.push_back(&launch);
    const auto time = launch.values.find("gpu__time_duration.sum");
    if (time != launch.values.end()) kernel.total_ns += time->second.value;
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const Kernel& a, const Kernel& b) { return a.total_ns > b.total_ns; });
  return kernels;
}

// Values of one raw metric over a kernel's launches.
struct Column {
  std::string raw_name;  // as the capture prints it
  std::vector<int64_t> ids;
  std::vector<double> values;
  double unit_scale = 1;  // of the first row

  bool empty() const { return ids.empty(); }
};

Column ColumnOf(const Kernel& kernel, absl::string_view raw_name) {
  Column column;
  for (const CounterLaunch* launch : kernel.launches) {
    const auto found = launch->values.find(raw_name);
    if (found == launch->values.end()) continue;
    if (column.empty()) {
      const auto printed = launch->printed_names.find(raw_name);
      column.raw_name =
          printed == launch->printed_names.end() ? std::string(raw_name) : printed->second;
      column.unit_scale = found->second.unit_scale;
    }
    column.ids.push_back(launch->id);
    column.values.push_back(found->second.value);
  }
  return column;
}

class KernelMetrics {
 public:
  KernelMetrics(const CounterReport& report, const CounterOptions& options, const Kernel& kernel,
                ResultBuilder* builder)
      : report_(report), options_(options), kernel_(kernel), builder_(*builder) {}

  absl::Status Add(bool with_stalls) {
    RETURN_IF_ERROR(AddSources());
    RETURN_IF_ERROR(AddDramBandwidth());
    RETURN_IF_ERROR(AddSpeedOfLight());
    if (options_.with_totals) RETURN_IF_ERROR(AddTotals());
    if (with_stalls) RETURN_IF_ERROR(AddStalls());
    AddSummary();
    return AddRules();
  }

 private:
  v1::Scope Scope(absl::string_view part = "") const {
    return KernelScope(part.empty() ? kernel_.name : absl::StrCat(kernel_.name, "|", part),
                       kernel_.device);
  }

  v1::Measured Provenance(absl::string_view raw_name, const std::vector<int64_t>& ids) const {
    v1::Measured measured;
    measured.set_tool("ncu");
    measured.set_tool_version(report_.tool_version);
    measured.set_artifact_id(options_.artifact_id);
    measured.set_raw_name(std::string(raw_name));
    measured.mutable_rows()->set_table(report_.table);
    SetRanges(ids, measured.mutable_rows());
    measured.set_samples(ids.size());
    return measured;
  }

  absl::StatusOr<const Metric*> AddColumn(absl::string_view id, const Column& column,
                                          v1::Scope scope) {
    v1::Measured measured = Provenance(column.raw_name, column.ids);
    measured.set_aggregation(column.ids.size() == 1 ? v1::AGGREGATION_SINGLE
                                                    : v1::AGGREGATION_MEAN);
    measured.set_unit_scale(column.unit_scale);
    SetSpread(column.values, &measured);
    return Keep(builder_.Measure(id, Mean(column.values), std::move(scope), std::move(measured)));
  }

  absl::StatusOr<const Metric*> Keep(absl::StatusOr<const Metric*> metric) {
    if (metric.ok()) keys_.push_back((*metric)->key());
    return metric;
  }

  bool Has(absl::string_view id) const { return by_id_.find(id) != by_id_.end(); }

  absl::Status AddSources();
  absl::Status AddDramBandwidth();
  absl::Status AddSpeedOfLight();
  absl::Status AddTotals();
  absl::Status AddStalls();
  absl::Status AddRules();
  absl::Status AddRule(const std::vector<const CounterRule*>& rules);
  void AddSummary();

  const CounterReport& report_;
  const CounterOptions& options_;
  const Kernel& kernel_;
  ResultBuilder& builder_;
  std::map<std::string, const Metric*, std::less<>> by_id_;
  std::vector<std::string> keys_;
};

absl::Status KernelMetrics::AddSources() {
  for (const CounterSource& source : CounterSources()) {
    if (Has(source.metric_id)) continue;
    Column chosen;
    for (const absl::string_view raw_name : source.raw_names) {
      Column column = ColumnOf(kernel_, raw_name);
      if (column.empty()) continue;
      if (chosen.empty() || Mean(column.values) > Mean(chosen.values)) chosen = std::move(column);
      if (!source.largest) break;
    }
    if (chosen.empty()) continue;
    ASSIGN_OR_RETURN(const Metric* metric, AddColumn(source.metric_id, chosen, Scope()));
    by_id_.emplace(source.metric_id, metric);
  }
  return absl::OkStatus();
}

absl::Status KernelMetrics::AddDramBandwidth() {
  if (Has("dram_bandwidth")) return absl::OkStatus();
  const Column read = ColumnOf(kernel_, "dram__bytes_read.sum.per_second");
  const Column write = ColumnOf(kernel_, "dram__bytes_write.sum.per_second");
  if (read.empty() || write.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Metric* r, AddColumn("dram_bandwidth", read, Scope("read")));
  ASSIGN_OR_RETURN(const Metric* w, AddColumn("dram_bandwidth", write, Scope("write")));
  ASSIGN_OR_RETURN(const Metric* sum, Keep(builder_.Derive("dram_bandwidth_sum", Scope(),
                                                           {{"read", r}, {"write", w}})));
  by_id_.emplace("dram_bandwidth", sum);
  return absl::OkStatus();
}

absl::Status KernelMetrics::AddSpeedOfLight() {
  if (!Has("compute_throughput") || !Has("memory_throughput")) return absl::OkStatus();
  return Keep(builder_.Derive("sol", Scope(),
                              {{"compute", by_id_.at("compute_throughput")},
                               {"memory", by_id_.at("memory_throughput")}}))
      .status();
}

absl::Status KernelMetrics::AddTotals() {
  std::vector<int64_t> ids;
  for (const CounterLaunch* launch : kernel_.launches) ids.push_back(launch->id);
  v1::Measured count = Provenance("launches", ids);
  count.set_aggregation(v1::AGGREGATION_COUNT);
  RETURN_IF_ERROR(Keep(builder_.Measure("kernel_launches", static_cast<double>(ids.size()), Scope(),
                                        std::move(count)))
                      .status());
  const Column time = ColumnOf(kernel_, "gpu__time_duration.sum");
  if (time.empty()) return absl::OkStatus();
  v1::Measured total = Provenance(time.raw_name, time.ids);
  total.set_aggregation(v1::AGGREGATION_SUM);
  total.set_unit_scale(time.unit_scale);
  const double sum = std::accumulate(time.values.begin(), time.values.end(), 0.0);
  return Keep(builder_.Measure("kernel_total_time", sum, Scope(), std::move(total))).status();
}

absl::Status KernelMetrics::AddStalls() {
  // Every reason the first launch has; all launches of one export have the same.
  std::vector<std::pair<std::string, const Metric*>> reasons;
  for (const auto& [raw_name, value] : kernel_.launches.front()->values) {
    absl::string_view reason = raw_name;
    if (!absl::ConsumePrefix(&reason, kStallPrefix) ||
        !absl::ConsumeSuffix(&reason, kStallSuffix)) {
      continue;
    }
    const Column column = ColumnOf(kernel_, raw_name);
    // What no launch waited for adds nothing to the sum.
    if (Mean(column.values) == 0) continue;
    ASSIGN_OR_RETURN(const Metric* cycles, AddColumn("stall_cycles", column, Scope(reason)));
    reasons.emplace_back(std::string(reason), cycles);
  }
  if (reasons.empty()) return absl::OkStatus();
  const Metric* all = reasons.front().second;
  for (size_t i = 1; i < reasons.size(); ++i) {
    const bool last = i + 1 == reasons.size();
    const std::string part = last ? "all" : absl::StrCat("first ", i + 1);
    ASSIGN_OR_RETURN(
        all, builder_.Derive("stall_sum", Scope(part), {{"a", all}, {"b", reasons[i].second}}));
    if (last) keys_.push_back(all->key());
  }
  if (all->value() <= 0) return absl::OkStatus();
  for (const auto& [reason, cycles] : reasons) {
    // A warp that was selected issued an instruction: it did not wait.
    if (reason == "selected") continue;
    RETURN_IF_ERROR(
        Keep(builder_.Derive("warp_stall", Scope(reason), {{"cycles", cycles}, {"all", all}}))
            .status());
  }
  return absl::OkStatus();
}

void KernelMetrics::AddSummary() {
  v1::KernelSummary* summary = builder_.result().add_kernels();
  summary->set_name(kernel_.name);
  summary->set_device(kernel_.device);
  summary->set_rank(-1);
  summary->set_launches(kernel_.launches.size());
  summary->set_total_time_ns(static_cast<int64_t>(std::clamp(kernel_.total_ns, 0.0, 9e18)));
  // The most frequent shape; the first of equals.
  std::map<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>, size_t> shapes;
  const CounterLaunch* typical = kernel_.launches.front();
  size_t most = 0;
  for (const CounterLaunch* launch : kernel_.launches) {
    const size_t count =
        ++shapes[{{launch->grid, launch->grid + 3}, {launch->block, launch->block + 3}}];
    if (count > most) {
      most = count;
      typical = launch;
    }
  }
  summary->set_grid_x(typical->grid[0]);
  summary->set_grid_y(typical->grid[1]);
  summary->set_grid_z(typical->grid[2]);
  summary->set_block_x(typical->block[0]);
  summary->set_block_y(typical->block[1]);
  summary->set_block_z(typical->block[2]);
  summary->set_category(timeline::ClassifyKernelName(kernel_.name) ==
                                timeline::GpuOpKind::kCollective
                            ? v1::KERNEL_CATEGORY_COMMUNICATION
                            : v1::KERNEL_CATEGORY_COMPUTE);
  for (const std::string& key : keys_) summary->add_metric_keys(key);
  summary->set_artifact_id(options_.artifact_id);
}

absl::Status KernelMetrics::AddRules() {
  std::set<int64_t> ids;
  for (const CounterLaunch* launch : kernel_.launches) ids.insert(launch->id);
  std::map<std::pair<std::string, std::string>, std::vector<const CounterRule*>> by_rule;
  for (const CounterRule& rule : report_.rules) {
    if (rule.estimated_speedup_percent < 0 || ids.count(rule.launch_id) == 0) continue;
    by_rule[{rule.section, rule.rule}].push_back(&rule);
  }
  for (const auto& [name, rules] : by_rule) RETURN_IF_ERROR(AddRule(rules));
  return absl::OkStatus();
}

absl::Status KernelMetrics::AddRule(const std::vector<const CounterRule*>& rules) {
  const CounterRule& first = *rules.front();
  std::vector<int64_t> ids;
  std::vector<double> estimates;
  for (const CounterRule* rule : rules) {
    ids.push_back(rule->launch_id);
    estimates.push_back(rule->estimated_speedup_percent);
  }
  v1::Measured measured = Provenance("Estimated Speedup", ids);
  measured.set_aggregation(ids.size() == 1 ? v1::AGGREGATION_SINGLE : v1::AGGREGATION_MEAN);
  measured.set_unit_scale(1);
  SetSpread(estimates, &measured);
  AddCondition("Section Name", first.section, measured.mutable_rows());
  AddCondition("Rule Name", first.rule, measured.mutable_rows());
  ASSIGN_OR_RETURN(const Metric* estimate,
                   builder_.Measure("tool_speedup_estimate", Mean(estimates), Scope(first.rule),
                                    std::move(measured)));
  v1::Finding* finding = builder_.result().add_findings();
  finding->set_id("tool_rule");
  finding->set_severity(v1::SEVERITY_INFO);
  (*finding->mutable_metric_keys())["estimate"] = estimate->key();
  (*finding->mutable_words())["tool"] = "ncu";
  (*finding->mutable_words())["rule"] = first.rule;
  (*finding->mutable_words())["kernel"] = kernel_.name;
  (*finding->mutable_words())["speedup_type"] = first.speedup_type;
  finding->mutable_location()->set_kernel(kernel_.name);
  finding->set_detail(first.text);
  return absl::OkStatus();
}

// Memory clock and bus width as the device reports them, and the bandwidth that
// follows. The raw page has them; the details page does not.
absl::Status AddDeviceBandwidth(const CounterReport& report, const CounterOptions& options,
                                int32_t device, ResultBuilder* builder) {
  const auto launch = std::find_if(report.launches.begin(), report.launches.end(),
                                   [&](const CounterLaunch& l) { return l.device == device; });
  if (launch == report.launches.end()) return absl::OkStatus();
  struct Attribute {
    const char* id;
    const char* raw_name;
    double scale;  // the export prints no unit for them
  };
  const Attribute attributes[] = {
      {"device_memory_clock", "device__attribute_memory_clock_rate", 1e3},
      {"memory_bus_width", "device__attribute_global_memory_bus_width", 1}};
  std::vector<const Metric*> inputs;
  for (const Attribute& attribute : attributes) {
    const auto value = launch->values.find(attribute.raw_name);
    if (value == launch->values.end()) return absl::OkStatus();
    v1::Measured measured;
    measured.set_tool("ncu");
    measured.set_tool_version(report.tool_version);
    measured.set_artifact_id(options.artifact_id);
    measured.set_raw_name(attribute.raw_name);
    measured.mutable_rows()->set_table(report.table);
    SetRanges({launch->id}, measured.mutable_rows());
    measured.set_aggregation(v1::AGGREGATION_SINGLE);
    measured.set_samples(1);
    measured.set_unit_scale(attribute.scale);
    ASSIGN_OR_RETURN(const Metric* metric,
                     builder->Measure(attribute.id, value->second.value * attribute.scale,
                                      DeviceScope(device), std::move(measured)));
    inputs.push_back(metric);
  }
  return builder
      ->Derive("device_dram_bandwidth_of_clock", DeviceScope(device),
               {{"clock", inputs[0]}, {"width", inputs[1]}})
      .status();
}

absl::Status NoKernel(const CounterReport& report, const CounterOptions& options) {
  std::set<std::string> names;
  for (const CounterLaunch& launch : report.launches) {
    if (names.size() < 5) names.insert(launch.kernel);
  }
  return MakeError(
      absl::StatusCode::kNotFound, "KERNEL_NOT_FOUND",
      absl::StrCat("constraints: no profiled kernel matches the pattern \"",
                   options.constraints.kernel_pattern(), "\" on the wanted devices; profiled were ",
                   absl::StrJoin(names, ", ")));
}

}  // namespace

absl::Status AddCounterMetrics(const CounterReport& report, const CounterOptions& options,
                               ResultBuilder* builder) {
  ASSIGN_OR_RETURN(const KernelFilter filter, KernelFilter::Make(options.constraints));
  const std::vector<Kernel> kernels = GroupByKernel(report, filter);
  if (kernels.empty()) return NoKernel(report, options);
  builder->AddGpus(report.gpus, options.artifact_id);
  builder->AddTool("ncu", report.tool_version);
  for (size_t i = 0; i < kernels.size(); ++i) {
    RETURN_IF_ERROR(KernelMetrics(report, options, kernels[i], builder)
                        .Add(/*with_stalls=*/i < kKernelsWithStalls));
  }
  std::set<int32_t> devices;
  for (const Kernel& kernel : kernels) devices.insert(kernel.device);
  for (const int32_t device : devices) {
    RETURN_IF_ERROR(AddDeviceBandwidth(report, options, device, builder));
  }
  return absl::OkStatus();
}

}  // namespace solward::profiling
