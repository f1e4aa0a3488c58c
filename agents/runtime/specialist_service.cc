// agents/runtime/specialist_service.cc
