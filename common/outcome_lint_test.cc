// common/outcome_lint_test.cc
