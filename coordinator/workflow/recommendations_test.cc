// coordinator/workflow/recommendations_test.cc
