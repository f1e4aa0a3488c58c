// agents/profiling/readers/ncu_csv_test.cc
