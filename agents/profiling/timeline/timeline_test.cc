// agents/profiling/timeline/timeline_test.cc
