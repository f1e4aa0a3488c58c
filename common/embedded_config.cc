#include "common/embedded_config.h"
