// coordinator/delegation/dispatcher_test.cc
