#include "coordinator/workflow/report.h"
