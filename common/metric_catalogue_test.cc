// common/metric_catalogue_test.cc
