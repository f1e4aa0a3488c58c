// csv_test.cc
