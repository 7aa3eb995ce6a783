#!/bin/sh
# Create the virtual environment named by the first argument and install the locked versions into it.
#
# Only Python 3.11 or newer with venv is needed, no uv and no compiler. `make setup` calls this script
# again only when the lock file or pyproject.toml has changed.
set -eu

venv=${1:?usage: setup.sh VENV_DIR}
wanted='import sys; sys.exit(sys.version_info < (3, 11))'

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}

# A name on PATH may be a shim that does not run, so each candidate is executed to check it.
find_python() {
    for name in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.14; do
        if "$name" -c "$wanted" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found='no python3'
    fail "Python 3.11 or newer is needed, but $found was found." \
        "Install it, or name it: make setup PYTHON=/path/to/python3.12"
}

if ! "$venv/bin/python" -c "$wanted; import pip" >/dev/null 2>&1; then
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        fail "$python has no venv module. On Debian and Ubuntu: apt install python$version-venv"
    printf 'setup: creating %s with Python %s\n' "$venv" "$version"
    "$python" -m venv --clear "$venv"
fi

printf 'setup: installing the locked versions (a minute or two the first time)\n'
"$venv/bin/python" -m pip install -qq --disable-pip-version-check \
    --require-hashes -r requirements.lock
"$venv/bin/python" -m pip install -qq --disable-pip-version-check \
    --no-deps --no-build-isolation -e .
printf 'setup: %s is ready\n' "$venv"
