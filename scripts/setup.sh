#!/bin/sh
# Create the virtual environment named by the first argument and install the locked versions into it.
#
#   setup.sh .venv        what the program needs: requirements.lock, and this package
#   setup.sh .venv dev    in addition what tests, checks and documentation need: requirements-dev.lock
#
# Only Python 3.11 or newer with venv is needed. uv installs the packages: the one on PATH, or else the
# locked version, which pip installs into the environment. If uv cannot be installed, pip does the work.
# The Makefile calls this script again only when a lock file or pyproject.toml has changed.
set -eu

venv=${1:?usage: setup.sh VENV_DIR [dev]}
part=${2:-}
wanted='import sys; sys.exit(sys.version_info < (3, 11))'
can_work_for_others='import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))'
busy=$venv/.installing # exists while packages are installed, and after a set-up that was killed
log=$(mktemp)
ticker=''

trap '[ -z "$ticker" ] || kill "$ticker" 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}

# Runs a command and prints a line with its seconds. In a terminal, the line counts them meanwhile.
step() {
    label=$1
    begin=$(date +%s)
    code=0
    shift
    if [ -t 1 ]; then
        (while printf '\rsetup: %s ... %d s' "$label" $(($(date +%s) - begin)); do sleep 1; done) &
        ticker=$!
    fi
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if [ -n "$ticker" ]; then
        kill "$ticker" 2>/dev/null || true
        wait "$ticker" 2>/dev/null || true
        ticker=''
        printf '\r\033[K'
    fi
    [ $code -ne 0 ] || printf 'setup: %s (%d s)\n' "$label" $(($(date +%s) - begin))
    return $code
}

# Prints the reason why the step failed: an error of the network that pip reports, or the last line.
reason() {
    grep -aoE "(\[Errno|Tunnel connection failed|certificate verify failed)[^')]*" "$log" | tail -n 1 | grep . ||
        sed 's/^ *//' "$log" | grep -av '^$\|^\[notice\]' | tail -n 1
}

is_network_down() {
    grep -aqiE 'connection ?(refused|error|broken|reset|timeout)|proxyerror|resol(ve|ution) |unreachable|timed out|tunnel|certificate|\(connect\)' "$log"
}

# Ends the script with the reason why packages could not be installed.
fail_install() {
    if is_network_down; then
        rm -f "$busy" # nothing was installed, so what is in the environment can be used
        fail "no package index can be reached ($(reason))." \
            "Check the network, HTTPS_PROXY and pip's index-url, then run the command again."
    fi
    fail "the packages cannot be installed ($(reason)). Fix this, then run the command again."
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

# Prints the path of uv 0.9 or newer: the one on PATH, or the one in the environment.
find_uv() {
    for name in uv "$venv/bin/uv"; do
        version=$("$name" --version 2>/dev/null </dev/null | sed -n 's/^uv \([0-9]*\.[0-9]*\)\..*/\1/p') || version=''
        case $version in
            '' | 0.[0-8]) ;;
            *) command -v "$name" && return ;;
        esac
    done
}

has_pip() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

create_environment() {
    if [ -n "$uv" ]; then
        "$uv" venv --allow-existing --python "$(command -v "$python")" "$venv"
    else
        "$python" -m venv --without-pip "$venv" # installing pip takes seconds, and the Python usually has one
    fi
}

# uv does not read pip's settings, but a machine may need them to reach a package index.
use_settings_of_pip() {
    settings=$("$(find_python)" -m pip config list 2>/dev/null) || settings=''
    for pair in UV_DEFAULT_INDEX=index-url SSL_CERT_FILE=cert; do
        value=$(printf '%s\n' "$settings" | sed -n "s/^[^ =]*\.${pair#*=}='\(.*\)'\$/\1/p" | head -n 1)
        name=${pair%%=*}
        eval "known=\${$name:-}"
        if [ -n "$value" ] && [ -z "$known" ]; then export "$name=$value"; fi
    done
}

# Runs the pip of the environment, or that of another Python: since 22.3, pip can work for other environments.
run_pip() {
    pip=$(find_python)
    if "$venv/bin/python" -c 'import pip' 2>/dev/null || ! "$pip" -c "$can_work_for_others" 2>/dev/null; then
        pip=$venv/bin/python
        "$pip" -c 'import pip' 2>/dev/null || "$pip" -m ensurepip
    fi
    "$pip" -m pip --python "$venv/bin/python" --disable-pip-version-check --no-input -q install --retries 2 --no-compile "$@"
}

# Installs the version of uv that requirements-dev.lock names.
install_uv() {
    sed -n '/^uv==/,/[^\\]$/p' requirements-dev.lock >"$venv/uv.lock"
    run_pip --no-deps --require-hashes -r "$venv/uv.lock"
}

install_packages() {
    if [ -n "$uv" ]; then
        use_settings_of_pip
        "$uv" pip install --python "$venv/bin/python" --require-hashes "$@" &&
            "$uv" pip install --python "$venv/bin/python" --no-deps --no-build-isolation -e .
    else
        run_pip --require-hashes "$@" && run_pip --no-deps --no-build-isolation -e .
    fi
}

other=$(cat "$busy" 2>/dev/null) || other=''
if [ -n "$other" ] && kill -0 "$other" 2>/dev/null; then
    printf 'setup: waiting for another set-up of %s (process %s)\n' "$venv" "$other"
    while [ -e "$busy" ] && kill -0 "$other" 2>/dev/null; do sleep 1; done
fi

cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/uv}
if ! mkdir -p "$cache" 2>/dev/null || ! [ -w "$cache" ]; then export UV_NO_CACHE=1; fi
uv=$(find_uv)
if [ -e "$busy" ] || ! "$venv/bin/python" -c "$wanted" >/dev/null 2>&1; then
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ -n "$uv" ] || has_pip "$python" ||
        fail "$python has no venv module. On Debian and Ubuntu: apt install python$version-venv"
    { rm -rf "$venv" && mkdir -p "$venv" && echo $$ >"$busy"; } 2>"$log" ||
        fail "$venv cannot be written ($(reason)). Use a folder that you can write."
    step "environment: $venv with Python $version" create_environment ||
        fail "$venv cannot be created ($(reason)). Fix this, then run the command again."
    uv=$(find_uv)
fi
echo $$ >"$busy"

if [ -z "$uv" ]; then
    unusable=''
    if command -v uv >/dev/null; then unusable=', because the one on PATH is older than 0.9 or does not run'; fi
    if step "uv$unusable" install_uv; then
        uv=$(find_uv)
    elif is_network_down; then
        fail_install
    fi
    [ -n "$uv" ] ||
        printf 'setup: uv cannot be installed, so pip installs the packages, which takes minutes\n'
fi
installer=uv
[ -n "$uv" ] || installer=pip
set -- -r requirements.lock
content=''
if [ "$part" = dev ]; then
    set -- "$@" -r requirements-dev.lock
    content=' in addition, for tests, checks and documentation'
fi
count=$(grep -c '^[a-z0-9]' "requirements${part:+-$part}.lock")
step "packages: $count$content, with $installer" install_packages "$@" || fail_install
rm -f "$busy"
