// The perf-profiling-specialist: reads captures of ncu, nsys, torch.profiler
// and nvidia-smi and answers with metrics.
#ifndef SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_
#define SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_

#include <memory>

#include "agents/runtime/specialist.h"

namespace solward::profiling {

std::unique_ptr<runtime::Specialist> MakeProfilingSpecialist();

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_
