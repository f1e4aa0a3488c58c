#include "coordinator/workflow/understand.h"
