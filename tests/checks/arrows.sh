#!/usr/bin/env bash
# Dependency arrows of docs/architecture.md: clients -> proto <- coordinator,
# agents -> proto, all may use common; agents/runtime knows no tool; the
# coordinator knows no profiler.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failures=0
forbid() { # forbid WHAT PATTERN PATH...
  local what=$1 pattern=$2 hits
  shift 2
  hits=$(grep -rnE --include='*.cc' --include='*.h' --include='*.py' -e "$pattern" "$@" | grep -vE '(_test\.cc|/testing/)' || true)
  if [ -n "$hits" ]; then
    echo "arrow broken: $what"
    echo "$hits"
    failures=$((failures + 1))
  fi
}
forbid "coordinator must not include agents or clients" '#include "(agents|clients)/' coordinator
forbid "agents must not include coordinator or clients" '#include "(coordinator|clients)/' agents
forbid "clients must not include coordinator or agents" '#include "(coordinator|agents)/' clients
forbid "common must not include coordinator, agents or clients" '#include "(coordinator|agents|clients)/' common
forbid "agents/runtime must not include a specialist" '#include "agents/(profiling|cuda_graph)/' agents/runtime
forbid "specialists must not include each other" '#include "agents/cuda_graph/' agents/profiling
forbid "specialists must not include each other" '#include "agents/profiling/' agents/cuda_graph
forbid "the coordinator must not know a profiler" \
  'CUPTI_ACTIVITY|traceEvents|--set[= ]full|--section|sm__|gpu__|dram__|smsp__|ProfilerStep#|nvidia-smi -|ncu -|nsys (profile|export|stats)' coordinator
[ "$failures" -eq 0 ] && echo "arrows: all as documented"
exit "$failures"
