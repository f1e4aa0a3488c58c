// coordinator/service/analysis_service.cc
