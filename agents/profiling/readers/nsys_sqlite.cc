// agents/profiling/readers/nsys_sqlite.cc
