// coordinator/workflow/statement.cc
