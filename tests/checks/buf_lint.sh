#!/usr/bin/env bash
# buf lint over proto/ (npm package @bufbuild/buf, pinned in tests/tools).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$root/build/tools"
cp "$root"/tests/tools/package.json "$root"/tests/tools/package-lock.json "$root/build/tools/"
if ! [ -x "$root/build/tools/node_modules/.bin/buf" ]; then
  (cd "$root/build/tools" && npm ci --silent --no-audit --no-fund)
fi
cd "$root/proto"
"$root/build/tools/node_modules/.bin/buf" lint
echo "buf lint: clean"
