#include "common/gpu_peaks.h"
