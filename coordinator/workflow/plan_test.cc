// coordinator/workflow/plan_test.cc
