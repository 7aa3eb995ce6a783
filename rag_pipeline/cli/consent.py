"""The answer of a person whether the code of a site may run on this machine."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import typer

from rag_pipeline.ingestion.site.docusaurus_config import find_loader


def has_consent(config: Path) -> bool:
    """Return True if a person has allowed to run a `docusaurus.config`.

    A person at a terminal is asked once for each content of the file. Without a terminal, in a job
    of continuous integration, and if the site cannot be run anyway, the answer is no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("CI"):
        return False
    if isinstance(find_loader(config.parent), str):
        return False
    place = f"{config.resolve()}\n".encode()
    answer = _find_answers() / hashlib.sha256(place + config.read_bytes()).hexdigest()
    if answer.is_file():
        return answer.read_text(encoding="utf-8") == "yes"
    is_allowed = typer.confirm(
        f"{config} computes values. Run it with Node? It can do everything that you can do on this "
        "machine. The answer is remembered until the file changes",
        err=True,
    )
    answer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    answer.write_text("yes" if is_allowed else "no", encoding="utf-8")
    return is_allowed


def _find_answers() -> Path:
    """Return the folder of the answers. It belongs to the user; no file of a site can name it."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "rag-pipeline" / "run-config"
