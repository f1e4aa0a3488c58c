// common/rpc_server_test.cc
