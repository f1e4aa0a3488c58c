// coordinator/workflow/report_test.cc
