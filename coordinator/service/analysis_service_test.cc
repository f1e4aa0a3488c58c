// coordinator/service/analysis_service_test.cc
