// agents/profiling/readers/nvidia_smi_csv.cc
