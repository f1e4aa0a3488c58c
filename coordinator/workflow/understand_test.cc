// coordinator/workflow/understand_test.cc
