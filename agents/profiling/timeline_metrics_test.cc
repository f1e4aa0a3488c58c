// agents/profiling/timeline_metrics_test.cc
