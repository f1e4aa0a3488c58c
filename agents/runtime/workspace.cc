#include "agents/runtime/workspace.h"
