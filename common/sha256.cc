#include "common/sha256.h"
