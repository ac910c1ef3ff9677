#!/bin/sh
# Makes the virtual environment DIR with $PYTHON where it is missing or broken.
set -eu
dir=$1
python=${PYTHON:-python3}

if [ -x "$dir/bin/python" ] && "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "$python is missing or older than 3.11: set PYTHON, as in make install PYTHON=python3.12" >&2
    exit 1
fi
if ! "$python" -m venv --clear "$dir"; then
    echo "$python could not make $dir: on Debian and Ubuntu, apt-get install python3-venv" >&2
    exit 1
fi
