#include "coordinator/delegation/dispatcher.h"
