// coordinator/workflow/recommendations.cc
