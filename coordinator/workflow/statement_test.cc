// coordinator/workflow/statement_test.cc
