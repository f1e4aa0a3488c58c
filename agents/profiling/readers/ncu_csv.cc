// agents/profiling/readers/ncu_csv.cc
