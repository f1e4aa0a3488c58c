#include "coordinator/workflow/plan.h"
