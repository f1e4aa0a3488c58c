#include "common/metric.h"
