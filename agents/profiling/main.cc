// perf-profiling-specialist as a process.
#include "agents/profiling/profiling_specialist.h"
#include "agents/runtime/agent_main.h"

int main(int argc, char** argv) {
  return solward::runtime::AgentMain(argc, argv, "profiling",
                                     solward::profiling::MakeProfilingSpecialist);
}
