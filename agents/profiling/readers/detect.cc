// agents/profiling/readers/detect.cc
