// agents/profiling/smi_metrics.cc
