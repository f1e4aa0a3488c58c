#include "agents/runtime/agent_options.h"
