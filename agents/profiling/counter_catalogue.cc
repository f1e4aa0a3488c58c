#include "agents/profiling/counter_catalogue.h"

#include <algorithm>

namespace solward::profiling {

const std::vector<CounterSource>& CounterSources() {
  static const auto* const kSources = new std::vector<CounterSource>{
      {"kernel_time", {"gpu__time_duration.sum", "gpu__time_duration.avg"}, "SpeedOfLight"},
      {"compute_throughput", {"sm__throughput.avg.pct_of_peak_sustained_elapsed"}, "SpeedOfLight"},
      {"memory_throughput",
       {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
       "SpeedOfLight"},
      {"dram_throughput",
       {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
       "SpeedOfLight"},
      {"l2_throughput", {"lts__throughput.avg.pct_of_peak_sustained_elapsed"}, "SpeedOfLight"},
      {"l1_throughput",
       {"l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__throughput.avg.pct_of_peak_sustained_active"},
       "SpeedOfLight"},
      {"dram_bandwidth", {"dram__bytes.sum.per_second"}, "MemoryWorkloadAnalysis"},
      {"tensor_pipe_utilization",
       {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
       "ComputeWorkloadAnalysis"},
      {"achieved_occupancy", {"sm__warps_active.avg.pct_of_peak_sustained_active"}, "Occupancy"},
      {"theoretical_occupancy", {"sm__maximum_warps_per_active_cycle_pct"}, "Occupancy"},
      {"registers_per_thread", {"launch__registers_per_thread"}, "LaunchStats"},
      {"waves_per_sm", {"launch__waves_per_multiprocessor"}, "LaunchStats"},
      {"sm_clock",
       {"smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.avg.per_second"},
       "SpeedOfLight"},
      // Chips before the common tensor pipe counter.
      {"tensor_pipe_utilization",
       {"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed",
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"},
       "ComputeWorkloadAnalysis",
       /*largest=*/true},
  };
  return *kSources;
}

const CounterSource* FindCounterSource(absl::string_view metric_id) {
  const auto found =
      std::find_if(CounterSources().begin(), CounterSources().end(),
                   [&](const CounterSource& source) { return source.metric_id == metric_id; });
  return found == CounterSources().end() ? nullptr : &*found;
}

}  // namespace solward::profiling
