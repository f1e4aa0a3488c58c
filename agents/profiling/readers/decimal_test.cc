// agents/profiling/readers/decimal_test.cc
