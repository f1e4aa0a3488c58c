#include "agents/profiling/timeline/time_model.h"
