// coordinator/report/render_test.cc
