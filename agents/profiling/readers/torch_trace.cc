// agents/profiling/readers/torch_trace.cc
