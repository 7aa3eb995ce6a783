#!/bin/sh
# Makes the virtual environment named by the first argument and installs the locked versions into it.
#
# Needs Python 3.11 or newer with venv, and nothing else: no uv, no compiler. Called by `make setup`,
# which runs it again only when the lock or pyproject.toml has changed.
set -eu

venv=${1:?usage: setup.sh VENV_DIR}
wanted='import sys; sys.exit(sys.version_info < (3, 11))'

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}

# A name on PATH may be a shim that runs nothing, so each candidate is asked, not looked up.
find_python() {
    for name in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.14; do
        if "$name" -c "$wanted" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found='no python3'
    fail "Python 3.11 or newer is needed, and $found was found." \
        "Install one, or name it: make setup PYTHON=/path/to/python3.12"
}

if ! "$venv/bin/python" -c "$wanted; import pip" >/dev/null 2>&1; then
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        fail "$python has no venv module. On Debian and Ubuntu: apt install python$version-venv"
    printf 'setup: making %s with Python %s\n' "$venv" "$version"
    "$python" -m venv --clear "$venv"
fi

printf 'setup: installing the locked versions (a minute or two the first time)\n'
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --require-hashes -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation -e .
printf 'setup: %s is ready\n' "$venv"
