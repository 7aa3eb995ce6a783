#!/bin/sh
# Write requirements.lock from pyproject.toml, with the version and hashes of every package for all
# platforms.
#
# uv is installed in a temporary environment, because only this script needs it. Locked versions do
# not change without `make lock ARGS=--upgrade` or ARGS="--upgrade-package qdrant-client".
set -eu

python=${1:?usage: lock.sh PYTHON [uv options]}
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
# The file must not name a package index, because each machine uses the one it is configured for. Extras
# such as gql[requests] must stay, because `pip install --require-hashes` compares them with the requirements.
"$folder/venv/bin/uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 \
    --extra pipeline --extra cohere --extra serve --extra langchain --extra llama-index --group dev --generate-hashes \
    --no-strip-extras --no-emit-index-url --no-header --no-annotate "$@" -o requirements.lock
