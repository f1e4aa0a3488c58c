#!/usr/bin/env bash
# From a fresh Debian 12 or Ubuntu 24.04 to a first report: installs what is
# missing, builds, starts a coordinator and both specialists on loopback,
# analyses the sample capture, prints the report and stops what it started.
# May be run again at any time; leaves no process behind, also when interrupted.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*"; }

say "1/4 Installing what is missing"
bash deploy/install-dependencies.sh

say "2/4 Building (release; the first time takes some minutes)"
cmake --preset release -DSOLWARD_TESTS=OFF -B build/quickstart >/dev/null
cmake --build build/quickstart --parallel "$(nproc)"
bin=$root/build/quickstart/bin

state=$(mktemp -d "${TMPDIR:-/tmp}/solward-quickstart-XXXXXX")
children=()
stop_all() {
  trap - EXIT INT TERM
  for ((i = ${#children[@]} - 1; i >= 0; --i)); do kill -TERM "${children[i]}" 2>/dev/null || true; done
  for pid in "${children[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$state"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start() { # start NAME PROGRAM ARGS...: in the background, log in the state folder
  local name=$1
  shift
  "$@" --die-with-parent >"$state/$name.log" 2>&1 </dev/null &
  children+=($!)
}
port_of() { # port_of NAME: the loopback port a program logged as ready
  for _ in $(seq 200); do
    local target
    target=$(sed -n 's/.*ready.*target=\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$state/$1.log" | head -n 1)
    if [ -n "$target" ]; then echo "$target"; return; fi
    sleep 0.05
  done
  echo "quickstart.sh: $1 did not start; its log:" >&2
  cat "$state/$1.log" >&2
  return 1
}

say "3/4 Starting a coordinator and both specialists on loopback"
start coordinator "$bin/solward-coordinator" --listen 127.0.0.1:0 --state-dir "$state/coordinator"
coordinator=$(port_of coordinator)
start profiling "$bin/solward-profiling-agent" --listen 127.0.0.1:0 --workspace "$state/profiling" --coordinator "$coordinator"
start cuda-graph "$bin/solward-cuda-graph-agent" --listen 127.0.0.1:0 --workspace "$state/cuda-graph" --coordinator "$coordinator"
port_of profiling >/dev/null
port_of cuda-graph >/dev/null
export SOLWARD_COORDINATOR=$coordinator
for _ in $(seq 100); do
  [ "$("$bin/solward" specialists | grep -c healthy)" -ge 2 ] && break
  sleep 0.1
done
"$bin/solward" specialists

say "4/4 Analysing deploy/sample/bmm.ncu.raw.csv"
"$bin/solward" analyze --capture deploy/sample/bmm.ncu.raw.csv \
  --context "B=32 M=512 N=1024 K=2048 dtype=fp16" --metrics mfu,sol,dram_bandwidth,tensor_pipe_utilization

say "Done. Stopping what was started. Next: $bin/solward analyze --local --capture YOUR_CAPTURE"
