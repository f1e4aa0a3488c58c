// common/status_test.cc
