// agents/runtime/registration_test.cc
