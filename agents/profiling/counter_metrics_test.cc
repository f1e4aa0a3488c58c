// agents/profiling/counter_metrics_test.cc
