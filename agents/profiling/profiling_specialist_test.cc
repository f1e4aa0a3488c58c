// agents/profiling/profiling_specialist_test.cc
