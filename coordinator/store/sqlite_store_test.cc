// coordinator/store/sqlite_store_test.cc
