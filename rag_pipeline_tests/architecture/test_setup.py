"""`make setup` on machines in good and bad condition, with a small project and package index.

Each test starts the real Makefile and scripts/setup.sh. Only the packages are small.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.loopback import (
    HANG,
    LoopbackServer,
    Received,
    Reply,
    find_closed_port,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("demo", "demo_tool")
TOOLS = (
    "awk cat date dirname echo env grep head kill make mkdir mktemp rm sed sh sleep tail test touch"
)
NEWER = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")
# A build backend, so that the project can be installed without another package.
BACKEND = """
from zipfile import ZipFile

def build_editable(folder, config_settings=None, metadata_directory=None):
    with ZipFile(f"{folder}/book-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(f"book-1.0.dist-info/{name}", text)
    return "book-1.0-py3-none-any.whl"
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "book"
version = "1.0"
"""


def describe(name: str) -> dict[str, str]:
    """Return the files of a package's `dist-info` folder."""
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }


def build_wheel(name: str) -> bytes:
    """Build a wheel that contains one module."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        for file, text in describe(name).items():
            wheel.writestr(f"{name}-1.0.dist-info/{file}", text)
    return buffer.getvalue()


WHEELS = {f"{name}-1.0-py3-none-any.whl": build_wheel(name) for name in PACKAGES}


def reply_as_index(request: Received) -> Reply:
    """Reply like a package index that has the packages of the small project."""
    last = request.path.rstrip("/").rpartition("/")[2]
    if last.endswith(".metadata"):
        return Reply(body=describe(last.partition("-")[0])["METADATA"].encode())
    if last in WHEELS:
        return Reply(body=WHEELS[last], headers={"Content-Type": "application/octet-stream"})
    links = [
        f'<a href="/files/{file}" data-dist-info-metadata="true">{file}</a>'
        for file in WHEELS
        if file.startswith(last.replace("-", "_") + "-1.0")
    ]
    page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
    return Reply(200 if links else 404, body=page, headers={"Content-Type": "text/html"})


@dataclass
class Clone:
    """A fresh clone of a small project, on a machine with some commands and settings."""

    folder: Path
    commands: Path
    settings: dict[str, str]

    def provide(self, name: str, script: str) -> None:
        """Put a command on PATH that runs a shell script."""
        path = self.commands / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def provide_uv(self) -> None:
        """Put the uv of the development environment on PATH."""
        found = Path(sys.executable).with_name("uv")
        (self.commands / "uv").symlink_to(found if found.exists() else shutil.which("uv") or found)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of `make`: the commands of the machine, and its settings."""
        home = str(self.folder / "home")
        return {"PATH": str(self.commands), "HOME": home, "NO_PROXY": "127.0.0.1", **self.settings}

    def make(self, target: str = "setup") -> subprocess.CompletedProcess[str]:
        """Run a target of the Makefile and return what it printed."""
        return subprocess.run(
            [str(self.commands / "make"), "--no-print-directory", target],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def has(self, module: str) -> bool:
        """Return True if the environment of the clone can import a module."""
        python = self.folder / ".venv" / "bin" / "python"
        return python.exists() and not subprocess.call(
            [python, "-c", f"import {module}"], stderr=subprocess.DEVNULL
        )


@pytest.fixture
def index() -> Iterator[LoopbackServer]:
    """A package index on 127.0.0.1."""
    with serve(reply_as_index) as server:
        yield server


@pytest.fixture
def clone(tmp_path: Path, index: LoopbackServer) -> Clone:
    """A fresh clone on a machine with Python, pip and no uv."""
    for name in ("Makefile", "scripts/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "backend.py").write_text(f"FILES = {describe('book')!r}\n{BACKEND}", "utf-8")
    for name, lock in zip(PACKAGES, ("requirements.lock", "requirements-dev.lock"), strict=True):
        digest = hashlib.sha256(WHEELS[f"{name}-1.0-py3-none-any.whl"]).hexdigest()
        entry = f"{name.replace('_', '-')}==1.0 \\\n    --hash=sha256:{digest}\n"
        (tmp_path / lock).write_text(entry, encoding="utf-8")
    clone = Clone(tmp_path, tmp_path / "commands", {"PIP_INDEX_URL": f"{index.url}/simple"})
    clone.commands.mkdir()
    for tool in TOOLS.split():
        (clone.commands / tool).symlink_to(str(shutil.which(tool)))
    clone.provide("python3", f'exec "{Path(sys.executable).resolve()}" "$@"')
    return clone


def assert_one_line(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Assert that a set-up failed and said why in one line, which contains some texts."""
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("setup: ")
    for part in parts:
        assert part in lines[0]


def test_uv_installs_what_the_program_needs_and_the_first_check_what_development_needs(
    clone: Clone,
) -> None:
    clone.provide_uv()
    clone.settings["HOME"] = "/proc/home"  # a home that cannot be written
    first = clone.make()
    assert first.returncode == 0, first.stderr
    assert not list((clone.folder / ".venv").glob("lib/*/site-packages/__pycache__/demo.*"))
    assert clone.has("demo")
    assert not clone.has("demo_tool")
    clone.provide("sh", "exit 7")  # a second set-up has nothing to do
    assert clone.make().returncode == 0
    (clone.commands / "sh").unlink()
    (clone.commands / "sh").symlink_to("/bin/sh")
    added = clone.make("check")  # there is no ruff, so it fails after its packages are installed
    assert clone.has("demo_tool"), added.stderr
    assert len([line for line in added.stdout.splitlines() if line.startswith("setup:")]) == 1


def test_pip_does_the_work_if_no_uv_can_be_used_or_installed(clone: Clone) -> None:
    clone.provide("uv", "echo 'uv 0.8.9'")
    done = clone.make()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^setup: uv, .* PATH", done.stdout, re.MULTILINE)
    assert re.search(r"^setup: packages: 1, with pip \(\d+ s\)$", done.stdout, re.MULTILINE)
    assert clone.has("demo")


def test_a_package_with_another_hash_is_not_installed(clone: Clone) -> None:
    clone.provide_uv()
    lock = clone.folder / "requirements.lock"
    lock.write_text(
        re.sub("sha256:.*", "sha256:" + "0" * 64, lock.read_text("utf-8")), encoding="utf-8"
    )
    assert_one_line(clone.make(), "cannot be installed", "run the command again")
    assert not clone.has("demo")


def test_a_machine_without_network_gets_one_line_and_the_next_set_up_works(
    clone: Clone, index: LoopbackServer
) -> None:
    clone.provide_uv()
    clone.settings["PIP_INDEX_URL"] = f"http://127.0.0.1:{find_closed_port()}/simple"
    clone.settings["UV_HTTP_RETRIES"] = "0"
    assert_one_line(clone.make(), "no package index can be reached", "refused", "HTTPS_PROXY")
    clone.settings["PIP_INDEX_URL"] = f"{index.url}/simple"
    assert clone.make().returncode == 0
    assert clone.has("demo")


def test_a_proxy_that_refuses_is_named_as_the_reason(clone: Clone, index: LoopbackServer) -> None:
    clone.provide("uv", "exit 1")
    proxy = {"HTTPS_PROXY": index.url, "PIP_INDEX_URL": "https://packages.invalid/simple"}
    clone.settings |= proxy
    assert_one_line(clone.make(), "no package index can be reached", "Tunnel", "HTTPS_PROXY")


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ('case "$1" in --version) echo Python 3.10.13;; *) exit 1;; esac', ("3.10.13", "PYTHON=")),
        (
            f'case "$2" in *ensurepip*) exit 1;; esac; exec "{sys.executable}" "$@"',
            ("no venv", "apt install"),
        ),
    ],
    ids=["an old Python", "a Python without venv"],
)
def test_a_python_that_cannot_be_used_gets_one_line(
    clone: Clone, script: str, parts: tuple[str, ...]
) -> None:
    for name in NEWER:
        clone.provide(name, script)
    assert_one_line(clone.make(), *parts)
    assert not (clone.folder / ".venv").exists()


def test_an_environment_that_cannot_be_written_gets_one_line(clone: Clone) -> None:
    (clone.folder / ".venv").symlink_to("/dev/null/venv")
    error = "rm: cannot remove .venv: Read-only file system"
    clone.provide("rm", f'case "$1" in -rf) echo "{error}" >&2; exit 1;; esac')
    assert_one_line(clone.make(), ".venv cannot be written", "Read-only file system")


def test_a_killed_set_up_is_repaired_by_the_next(
    clone: Clone,
) -> None:
    was_asked, is_killed = Event(), Event()

    def reply(request: Received) -> Reply:
        was_asked.set()
        return reply_as_index(request) if is_killed.is_set() else HANG

    with serve(reply) as server:
        clone.provide_uv()
        clone.settings["PIP_INDEX_URL"] = f"{server.url}/simple"
        process = subprocess.Popen(
            [clone.commands / "make", "setup"],
            cwd=clone.folder,
            env=clone.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert was_asked.wait(60)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        stale = clone.folder / ".venv" / "half-installed"
        stale.touch()
        is_killed.set()
        done = clone.make()
    assert done.returncode == 0, done.stderr
    assert not stale.exists()
    assert clone.has("demo")
