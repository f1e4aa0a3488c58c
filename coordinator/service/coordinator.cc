// coordinator/service/coordinator.cc
