// agents/runtime/agent_main.cc
