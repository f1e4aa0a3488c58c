// coordinator/report/messages.cc
