#include "common/id.h"
