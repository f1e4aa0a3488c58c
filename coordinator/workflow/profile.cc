#include "coordinator/workflow/profile.h"
