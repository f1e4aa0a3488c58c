#!/usr/bin/env bash
# Installs what building (and with --tests: testing) Solward needs, from the
# distribution's packages. Debian 12, Ubuntu 24.04. Does nothing when all is there.
set -euo pipefail

build=(build-essential cmake ninja-build pkg-config ccache mold
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev libspdlog-dev
  libfmt-dev libyaml-cpp-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libsimdjson-dev
  zlib1g-dev libzstd-dev libre2-dev libssl-dev libc-ares-dev libexpat1-dev)
tests=(libgtest-dev libgmock-dev libbenchmark-dev clang-14 clang-format-14 clang-tidy-14
  libclang-rt-14-dev python3 python3-venv sqlite3 git)

packages=("${build[@]}")
case "${1:-}" in
  "") ;;
  --tests) packages+=("${tests[@]}") ;;
  -h|--help) sed -n '2,3p' "$0"; exit 0 ;;
  *) echo "install-dependencies.sh: unknown option '$1'; expected --tests or nothing" >&2; exit 2 ;;
esac
if [ "${1:-}" = --tests ] && ! command -v npm >/dev/null; then packages+=(nodejs npm); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "All packages are installed."
  exit 0
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-dependencies.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "Installing: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
