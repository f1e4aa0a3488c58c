#include "common/outcome_lint.h"
