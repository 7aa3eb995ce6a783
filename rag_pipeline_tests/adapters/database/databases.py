"""Databases for tests of the question log: SQLite files and a throwaway Postgres server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.protocols import LoggedAnswer
from rag_pipeline.core.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime.now(UTC).replace(microsecond=123_000)


def make_log_settings(folder: Path, **overrides: object) -> Settings:
    """Return settings of a book in the folder, with a question log."""
    return load_settings(docs_dir=folder / "docs", data_dir=folder / "data", **overrides)


def make_logged(answer_id: str = "a1", **overrides: object) -> LoggedAnswer:
    """Return an answer with a question, asked now."""
    values = {
        "conversation_id": "c1",
        "asked_at": NOW,
        "mode": "normal",
        "kind": "extracted",
        "level": "answered",
        "reason": "sufficient",
        "question": "What is a node?",
        "sources": ("https://book.example.org/page#a", "https://book.example.org/page#b"),
        "confidence": 0.75,
        "index_id": "book-1",
        "latency_ms": 12.5,
    } | overrides
    return LoggedAnswer(answer_id, **values)  # type: ignore[arg-type]  # names are checked at run time


@contextmanager
def run_postgres() -> Iterator[str]:
    """Start a Postgres server on a free port and yield its URL; skip if it is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("Postgres is not installed")
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    root = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a short socket path
    try:
        if prefix:
            shutil.chown(root, "postgres")
        data, tools = root / "data", folders[-1]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        def run(*command: object) -> None:
            words = [*prefix, *(str(word) for word in command)]
            subprocess.run(words, check=True, capture_output=True, cwd=root, timeout=100)

        run(tools / "initdb", "-D", data, "-A", "trust", "-U", "tutor", "--no-sync", "-E", "UTF8")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {root} -c fsync=off"
        run(tools / "pg_ctl", "-D", data, "-o", options, "-l", root / "log", "-w", "start")
        try:
            place = f"127.0.0.1:{port}/postgres"
            yield f"postgresql://tutor:hidden-word@{place}"  # pragma: allowlist secret
        finally:
            run(tools / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(root, ignore_errors=True)
