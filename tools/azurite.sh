#!/bin/sh
# Installs Azurite, the emulator of Azure Storage, into the folder given, as tools/parts locks it.
# Node 20 or newer is taken if it is there, else Debian's package. No script of a package is run.
#
# The lock is written again, without the addresses of any registry, by
#   cd tools/parts && npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
set -eu
target=$1

node_version() { # prints the major version of the node on the path, or 0
    command -v node >/dev/null && command -v npm >/dev/null || { echo 0; return; }
    node --version | sed 's/^v\([0-9]*\).*/\1/'
}

if [ "$(node_version)" -lt 20 ]; then
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo -n"
    if ! command -v apt-get >/dev/null; then
        echo "Azurite needs Node 20 or newer, and there is no apt-get here: install it and run again" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    { $as_root apt-get update -qq &&
        $as_root apt-get install -y -qq --no-install-recommends nodejs npm; } </dev/null || true
    if [ "$(node_version)" -lt 20 ]; then
        echo "Azurite needs Node 20 or newer, and apt-get brought node $(node_version): install it and run again" >&2
        exit 1
    fi
fi
mkdir -p "$target"
cp tools/parts/package.json tools/parts/package-lock.json "$target/"
cd "$target"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
