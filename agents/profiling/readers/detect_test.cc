// agents/profiling/readers/detect_test.cc
