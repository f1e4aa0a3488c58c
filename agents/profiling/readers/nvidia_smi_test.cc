// agents/profiling/readers/nvidia_smi_test.cc
