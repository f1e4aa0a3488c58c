#!/usr/bin/env bash
# clang-tidy 14 (.clang-tidy) over the product's sources, or the files given.
# Needs a configured build folder: BUILD=build/release by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${BUILD:-build/release}
if [ $# -gt 0 ]; then files=("$@"); else
  mapfile -t files < <(git ls-files 'common/*.cc' 'coordinator/*.cc' 'agents/*.cc' 'clients/*.cc' | grep -v '_test\.cc$')
fi
# Results are kept per content, so that a second run checks only what changed.
cache=build/tidy-cache
mkdir -p "$cache"
headers=$(git ls-files '*.h' '*.proto' .clang-tidy | xargs cat | sha256sum | cut -c1-16)
check() {
  local key
  key=$cache/$(cat "$1" | sha256sum | cut -c1-24)-$2
  [ -e "$key" ] && return 0
  clang-tidy-14 -p "$3" --quiet --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' "$1" 2>/dev/null && touch "$key"
}
export -f check
export cache
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check "$@"' _ {} "$headers" "$build"
echo "tidy: ${#files[@]} files clean"
