// agents/cuda_graph/cuda_graph_specialist.cc
