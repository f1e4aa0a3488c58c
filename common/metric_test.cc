// common/metric_test.cc
