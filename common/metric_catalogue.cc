#include "common/metric_catalogue.h"
