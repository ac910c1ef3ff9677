#!/bin/sh
# Writes requirements.lock and requirements-parts.lock from pyproject.toml, and
# requirements-bigquery.lock from tools/parts/bigquery.in: exact versions with hashes, and no index
# address, link or path. Versions that are locked already stay, unless UPGRADE=1 is set.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check uv

compile() { # compile OUTPUT SOURCE [OPTION...]: one lock, kept apart until it is whole
    output=$1
    shift
    [ -n "${UPGRADE:-}" ] || [ ! -f "$output" ] || cp "$output" "$work/$output"
    "$work/venv/bin/uv" pip compile "$@" --quiet --universal --python-version 3.11 \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
        --output-file "$work/$output"
    # Whatever the machine's settings still put in, the lock does not keep.
    sed -i -e '/^--\(index-url\|extra-index-url\|find-links\|trusted-host\)/d' \
        -e '/^ *#/d' "$work/$output"
}

compile requirements.lock pyproject.toml --group build --group dev
cp "$work/requirements.lock" requirements.lock

# The parts environment holds requirements.lock and, on top of it, only what that one lacks.
compile requirements-parts.lock pyproject.toml --group build --group dev --group parts \
    --constraints requirements.lock
awk '
    NR == FNR { if ($0 ~ /^[^ ]/) locked[$1] = 1; next }
    /^[^ ]/ { keep = !($1 in locked) }
    keep
' requirements.lock "$work/requirements-parts.lock" > "$work/only-parts"
cp "$work/only-parts" requirements-parts.lock

# BigQuery's emulator has an environment of its own: it needs an older sqlglot than the product.
compile requirements-bigquery.lock tools/parts/bigquery.in
cp "$work/requirements-bigquery.lock" requirements-bigquery.lock
