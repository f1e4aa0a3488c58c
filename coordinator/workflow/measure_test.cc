// coordinator/workflow/measure_test.cc
