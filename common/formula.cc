// common/formula.cc
