// agents/runtime/specialist_service_test.cc
