// perf-torch-cuda-graph-specialist as a process.
#include "agents/cuda_graph/cuda_graph_specialist.h"
#include "agents/runtime/agent_main.h"

int main(int argc, char** argv) {
  return solward::runtime::AgentMain(argc, argv, "cuda-graph",
                                     solward::cuda_graph::MakeCudaGraphSpecialist);
}
