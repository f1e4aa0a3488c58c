// agents/profiling/counter_metrics.cc
