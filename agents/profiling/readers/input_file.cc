// agents/profiling/readers/input_file.cc
