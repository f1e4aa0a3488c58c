// coordinator/workflow/classify_test.cc
