// agents/profiling/timeline_metrics.cc
