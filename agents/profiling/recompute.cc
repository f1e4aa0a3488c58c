// agents/profiling/recompute.cc
