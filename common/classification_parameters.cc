#include "common/classification_parameters.h"
