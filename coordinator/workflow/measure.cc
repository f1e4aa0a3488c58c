#include "coordinator/workflow/measure.h"
