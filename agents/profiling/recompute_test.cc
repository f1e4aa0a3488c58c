// agents/profiling/recompute_test.cc
