"""Fixtures that run the `rag-pipeline` command in this process on a small book."""

from __future__ import annotations

import shutil
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline import cli
from rag_pipeline.orchestration import instance
from rag_pipeline_tests.end_to_end.command import (
    CONFIG,
    UNSET,
    Command,
    Outcome,
    embed,
    make_command,
    write_config,
)
from rag_pipeline_tests.loopback import LoopbackServer, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rag_pipeline.core.settings import Settings


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """An embedding service on 127.0.0.1 that answers every request."""
    with serve(embed) as server:
        yield server


@pytest.fixture
def command(tmp_path: Path, server: LoopbackServer) -> Command:
    """The command with a book of three pages that is not indexed."""
    return make_command(tmp_path, server.url)


@pytest.fixture
def call(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    empty_history: Path,
) -> Callable[..., Outcome]:
    """A function that runs the command in this process, which saves the time for imports.

    Its keywords are settings that change the environment of the command. A new book begins with a
    copy of Dagster's databases, whose creation takes half of the time of a small ingestion.
    """
    monkeypatch.chdir(command.root)
    prepare = instance.prepare_dagster_home

    def prepare_with_databases(settings: Settings) -> Path:
        home = prepare(settings)
        if not any(home.rglob("*.db")):
            shutil.copytree(empty_history, home, dirs_exist_ok=True)
        return home

    monkeypatch.setattr(instance, "prepare_dagster_home", prepare_with_databases)

    def call(*arguments: str, **changes: str) -> Outcome:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name, value in (command.environment | changes).items():
                if name not in {"PATH", "HOME"}:
                    patch.setenv(name, value)
            patch.setenv("DAGSTER_HOME", "")
            patch.setattr(sys, "argv", ["rag-pipeline", *arguments])
            patch.setattr(cli, "_end_at_once", lambda: None)  # it would end the tests
            previous_handler = signal.getsignal(signal.SIGTERM)
            with pytest.raises(SystemExit) as stop:
                cli.main()
            signal.signal(signal.SIGTERM, previous_handler)
        found = capfd.readouterr()
        return Outcome(int(stop.value.code or 0), found.out, found.err)

    return call


@pytest.fixture
def run(
    command: Command, call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """A function that runs the command in the folder of a site, whose settings are not set."""
    write_config(command, CONFIG)
    monkeypatch.chdir(command.root)
    monkeypatch.delenv("DOCS_DIR", raising=False)
    return lambda *arguments, **changes: call(*arguments, **(UNSET | changes))
