#include "coordinator/workflow/classify.h"
