// agents/profiling/timeline/timeline_builder_test.cc
