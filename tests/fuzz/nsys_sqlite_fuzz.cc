// Any bytes give a status or a timeline whose shares sum up, never a crash.
#include "agents/profiling/timeline/time_model.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const solward::fuzz::MemoryFile file(data, size);
  auto timeline = solward::readers::ReadNsysSqlite(file.path(), solward::fuzz::SmallLimits());
  if (!timeline.ok()) return 0;
  auto shares = solward::timeline::ComputeShares(*timeline, {}, {});
  if (!shares.ok()) return 0;
  for (const auto& lane : *shares) {
    if (lane.whole.busy() + lane.whole.idle() != lane.whole.window) std::abort();
  }
  return 0;
}
