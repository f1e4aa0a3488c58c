// common/formula_test.cc
