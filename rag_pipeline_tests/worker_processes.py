"""The worker processes of `rag-pipeline ingest --workers`, found in /proc."""

from __future__ import annotations

from pathlib import Path


def list_workers(command: int) -> list[int]:
    """Return the ids of the processes that index for a command.

    They are forks of one child of the command, which does no work itself.

    Args:
        command: Id of the process of the command.
    """
    return sorted(
        worker
        for server in _list_children(command)
        for worker in _list_children(server)
        if b"forkserver" in _read(worker, "cmdline")
    )


def _list_children(parent: int) -> list[int]:
    return [int(child) for child in _read(parent, f"task/{parent}/children").split()]


def _read(process: int, name: str) -> bytes:
    """Return a file of /proc; empty if the process has ended."""
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return b""
