// The perf-torch-cuda-graph-specialist. It registers and describes itself; its
// analysis of sources and timelines is not available yet, and it says so.
#ifndef SOLWARD_AGENTS_CUDA_GRAPH_CUDA_GRAPH_SPECIALIST_H_
#define SOLWARD_AGENTS_CUDA_GRAPH_CUDA_GRAPH_SPECIALIST_H_

#include <memory>

#include "agents/runtime/specialist.h"

namespace solward::cuda_graph {

std::unique_ptr<runtime::Specialist> MakeCudaGraphSpecialist();

}  // namespace solward::cuda_graph

#endif  // SOLWARD_AGENTS_CUDA_GRAPH_CUDA_GRAPH_SPECIALIST_H_
