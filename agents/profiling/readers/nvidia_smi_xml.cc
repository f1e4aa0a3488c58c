// agents/profiling/readers/nvidia_smi_xml.cc
