// coordinator/store/sqlite_store.cc
