// coordinator/service/registry_service.cc
