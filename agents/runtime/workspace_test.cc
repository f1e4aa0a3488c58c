// agents/runtime/workspace_test.cc
