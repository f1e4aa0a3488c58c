// coordinator/delegation/registry_test.cc
