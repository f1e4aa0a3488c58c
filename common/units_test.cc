// common/units_test.cc
