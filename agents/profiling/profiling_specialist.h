// The profiling specialist: recorded captures into metrics. It chooses how to
// read them; only artifact ids leave it.
#ifndef SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_
#define SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_

#include <memory>

#include "agents/runtime/specialist.h"

namespace solward::profiling {

std::unique_ptr<runtime::Specialist> MakeProfilingSpecialist();

}  // namespace solward::profiling

#endif  // SOLWARD_AGENTS_PROFILING_PROFILING_SPECIALIST_H_
