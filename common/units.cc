#include "common/units.h"
