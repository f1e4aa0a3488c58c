#include "agents/profiling/timeline/timeline.h"
