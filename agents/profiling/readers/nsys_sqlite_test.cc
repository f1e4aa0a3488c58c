// agents/profiling/readers/nsys_sqlite_test.cc
