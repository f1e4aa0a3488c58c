// input_file_test.cc
