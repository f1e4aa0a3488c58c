// agents/profiling/profiling_specialist.cc
