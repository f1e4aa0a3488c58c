// agents/runtime/delegation_test.cc
