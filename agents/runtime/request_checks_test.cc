// agents/runtime/request_checks_test.cc
