#!/bin/sh
# Sees to a Java 17 or newer for Spark: takes the one that is there, else Debian's package.
set -eu

java_version() { # prints the major version of the java on the path, or 0
    command -v java >/dev/null || { echo 0; return; }
    java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

if [ "$(java_version)" -ge 17 ]; then
    exit 0
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
if ! command -v apt-get >/dev/null; then
    echo "Spark needs Java 17 or newer, and there is no apt-get here: install it and run again" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
if ! { $as_root apt-get update -qq &&
    $as_root apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } </dev/null; then
    echo "Spark needs Java 17 or newer, and apt-get could not install openjdk-17-jre-headless" >&2
    exit 1
fi
[ "$(java_version)" -ge 17 ]
