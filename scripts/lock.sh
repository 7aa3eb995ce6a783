#!/bin/sh
# Writes requirements.lock from pyproject.toml: every version and hash, for every platform.
#
# uv comes from a throw-away environment, so that only this command needs it. Versions already locked
# stay unless asked otherwise: `make lock ARGS=--upgrade`, or ARGS="--upgrade-package qdrant-client".
set -eu

python=${1:?usage: lock.sh PYTHON [uv options]}
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
# The file must name no index: each machine asks the one it is set up for.
"$folder/venv/bin/uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 \
    --extra pipeline --extra cohere --group dev --generate-hashes \
    --no-emit-index-url --no-header --no-annotate "$@" -o requirements.lock
