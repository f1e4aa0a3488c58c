// coordinator/delegation/registry.cc
