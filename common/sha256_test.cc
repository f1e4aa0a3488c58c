// common/sha256_test.cc
