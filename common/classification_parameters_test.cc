// common/classification_parameters_test.cc
