// agents/profiling/readers/torch_trace_test.cc
