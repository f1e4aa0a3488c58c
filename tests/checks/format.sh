#!/usr/bin/env bash
# All C++ is formatted by clang-format 14 (.clang-format). --fix rewrites.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
git ls-files '*.cc' '*.h' | xargs clang-format-14 "${mode[@]}"
echo "format: clean"
