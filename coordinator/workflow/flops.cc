// coordinator/workflow/flops.cc
