#include "common/rpc_server.h"
