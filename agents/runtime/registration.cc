// agents/runtime/registration.cc
