// coordinator/service/analysis_engine.cc
