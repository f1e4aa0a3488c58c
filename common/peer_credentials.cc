#include "common/peer_credentials.h"
