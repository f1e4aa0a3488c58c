// agents/profiling/timeline/time_model_test.cc
