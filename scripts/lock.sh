#!/bin/sh
# Write the lock files from pyproject.toml, with the version and hashes of every package for all
# platforms: requirements.lock has what the program needs, requirements-dev.lock what development needs
# in addition. Both come from one resolution, so they can be installed together. deploy/requirements.lock has
# what the image needs, with the same versions, except those that deploy/requirements.txt names.
#
# Locked versions do not change without `make lock ARGS=--upgrade` or ARGS="--upgrade-package qdrant-client".
set -eu

python=${1:?usage: lock.sh PYTHON [uv options]}
shift
uv=$(dirname "$python")/uv
[ -x "$uv" ] || uv=uv
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The files must not name a package index, because each machine uses the one it is configured for. Extras
# such as gql[requests] must stay, because `pip install --require-hashes` compares them with the requirements.
compile() {
    "$uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
        --extra pipeline --extra serve --extra cohere --group install \
        --no-strip-extras --no-emit-index-url --no-header --no-annotate "$@"
}

cat requirements.lock requirements-dev.lock >"$folder/all.lock"
compile --extra langchain --extra llama-index --group dev "$@" -o "$folder/all.lock"
compile --group ui --constraints "$folder/all.lock" -o "$folder/main.lock"
"$python" - "$folder/main.lock" "$folder/all.lock" >"$folder/dev.lock" <<'SPLIT'
import re, sys

main, both = (re.split(r"\n(?=\w)", open(name).read().rstrip("\n")) for name in sys.argv[1:])
print("\n".join(entry for entry in both if entry not in main))
SPLIT
mv "$folder/main.lock" requirements.lock
mv "$folder/dev.lock" requirements-dev.lock

# Without hashes and extras, the lock is a list of constraints.
sed -nE 's/^([a-z0-9].*) \\$/\1/p' requirements.lock | sed -E 's/\[[a-z0-9,-]+\]//' >"$folder/constraints.txt"
sed -nE 's/^([a-z0-9-]+)==.*/\1/p' deploy/requirements.txt | while read -r name; do
    sed -i.bak "/^$name==/d" "$folder/constraints.txt"
done
compile deploy/requirements.txt --constraints "$folder/constraints.txt" -o "$folder/deploy.lock"
mv "$folder/deploy.lock" deploy/requirements.lock
