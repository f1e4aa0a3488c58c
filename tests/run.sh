#!/usr/bin/env bash
# Runs Solward's tests. Installs what they need, starts its own services on
# loopback, leaves no process behind.
#
#   bash tests/run.sh                checks, unit, e2e, asan, fuzz (within 45 minutes on two cores)
#   bash tests/run.sh quick          checks, unit, e2e: minutes
#   bash tests/run.sh TIER...        some of: checks unit e2e asan tsan fuzz tidy
#
# The last line is "N passed, N failed" over everything that ran.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

all=(checks unit e2e asan tsan fuzz tidy)
tiers=("$@")
[ ${#tiers[@]} -eq 0 ] && tiers=(checks unit e2e asan fuzz)
[ "${tiers[*]}" = quick ] && tiers=(checks unit e2e)
for tier in "${tiers[@]}"; do
  case " ${all[*]} " in *" $tier "*) ;; *)
    echo "tests/run.sh: unknown tier '$tier'; expected: quick ${all[*]}" >&2; exit 2 ;;
  esac
done

passed=0
failed=0
skipped=0
jobs=$(nproc)
logs=$root/build/test-logs
mkdir -p "$logs"

# Every process of this run is in this script's process group or a child of
# it; an interrupt ends them all.
trap 'trap - INT TERM; echo "interrupted"; kill 0; exit 130' INT TERM

say() { printf '\n== %s (%s)\n' "$*" "$(date +%H:%M:%S)"; }
one() { # one NAME COMMAND...: counts as one test
  local name=$1
  shift
  if "$@" >"$logs/$name.log" 2>&1; then
    passed=$((passed + 1)); echo "ok      $name"
  else
    failed=$((failed + 1)); echo "FAILED  $name; its output:"; tail -n 60 "$logs/$name.log"
  fi
}
build() { # build PRESET CMAKE-ARGS...: counts as one test
  local preset=$1
  shift
  configure_and_build() {
    cmake --preset "$preset" -DSOLWARD_WERROR=ON "$@" && cmake --build --preset "$preset" --parallel "$jobs"
  }
  one "build-$preset" configure_and_build "$@"
}
run_ctest() { # run_ctest PRESET ARGS...: adds CTest's own counts
  local preset=$1 out=$logs/ctest-$1.log line
  shift
  ctest --preset "$preset" -j "$jobs" "$@" >"$out" 2>&1
  line=$(grep -E 'tests passed, [0-9]+ tests? failed out of' "$out")
  if [ -z "$line" ]; then
    failed=$((failed + 1)); echo "FAILED  ctest-$preset ran no tests"; tail -n 30 "$out"; return
  fi
  local bad total
  bad=$(sed -E 's/.*, ([0-9]+) tests? failed out of.*/\1/' <<<"$line")
  total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<<"$line")
  passed=$((passed + total - bad))
  failed=$((failed + bad))
  echo "ctest-$preset: $((total - bad)) passed, $bad failed"
  [ "$bad" -eq 0 ] || grep -vE '^ *[0-9]+/[0-9]+ Test.*Passed' "$out" | tail -n 150
}

tier_checks() {
  one arrows bash tests/checks/arrows.sh
  one outcome-only-contract bash tests/checks/no_delegated_methods.sh
  one format bash tests/checks/format.sh
  one buf-lint bash tests/checks/buf_lint.sh
}
tier_unit() {
  build release
  run_ctest release
}
tier_e2e() {
  [ -x build/release/bin/solward ] || build release
  if ! [ -x build/venv/bin/pytest ]; then
    one python-environment bash -c \
      'python3 -m venv build/venv && build/venv/bin/pip install --quiet --disable-pip-version-check -r tests/e2e/requirements.txt'
  fi
  local out=$logs/pytest.log line bad good skip
  SOLWARD_BIN_DIR=$root/build/release/bin SOLWARD_SOURCE_DIR=$root \
    build/venv/bin/pytest -q -ra -p no:cacheprovider tests/e2e >"$out" 2>&1
  line=$(grep -E '^[^=]*[0-9]+ (passed|failed|error)' "$out" | tail -n 1)
  good=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
  bad=$(grep -oE '[0-9]+ (failed|error)' <<<"$line" | grep -oE '[0-9]+' | paste -sd+ | bc 2>/dev/null || true)
  skip=$(grep -oE '[0-9]+ skipped' <<<"$line" | grep -oE '[0-9]+' || echo 0)
  if [ -z "$line" ]; then bad=1; fi
  bad=${bad:-0}
  passed=$((passed + good)); failed=$((failed + bad)); skipped=$((skipped + skip))
  echo "pytest: $good passed, $bad failed, $skip skipped"
  [ "$bad" -eq 0 ] || tail -n 150 "$out"
  grep -E '^SKIPPED' "$out" || true
}
tier_asan() {
  build asan
  ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 run_ctest asan
}
tier_tsan() {
  build tsan
  TSAN_OPTIONS="suppressions=$root/tests/tsan.supp halt_on_error=1" run_ctest tsan -LE "no_tsan"
}
tier_fuzz() {
  local seconds=${SOLWARD_FUZZ_SECONDS:-20}
  build_fuzz() {
    cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-14 \
      -DCMAKE_C_COMPILER=clang-14 -DSOLWARD_FUZZ=ON -DSOLWARD_TESTS=OFF -DSOLWARD_SANITIZE=address,undefined &&
      cmake --build build/fuzz --parallel "$jobs" --target solward_fuzz_targets
  }
  one build-fuzz build_fuzz
  local target name
  for target in build/fuzz/fuzz/*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=$(basename "$target")
    mkdir -p "build/fuzz/corpus/$name"
    one "fuzz-$name" "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
      "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
  done
}
tier_tidy() {
  [ -e build/release/compile_commands.json ] || build release
  one tidy bash tests/checks/tidy.sh
}

say "Installing what the tests need"
bash deploy/install-dependencies.sh --tests || { echo "0 passed, 1 failed"; exit 1; }
for tier in "${tiers[@]}"; do
  say "$tier"
  "tier_$tier"
done
say "Done"
if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
