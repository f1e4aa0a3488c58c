// coordinator/workflow/flops_test.cc
