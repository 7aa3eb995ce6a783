"""Describes what the result of an evaluation depends on, so that results can be compared."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.evaluation.records import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import EmbeddingModel
    from rag_pipeline.evaluation.golden_set import GoldenSet

# Settings that change no result:
_UNRELATED_ENDINGS: Final = ("_dir", "_url", "_timeout_s", "_idle_s")
_UNRELATED: Final = (
    "answer_",
    "dagster_",
    "embedding_prices",
    "evaluation_",
    "ingest_",
    "log_",
    "qdrant_",
)
_GIT_TIMEOUT_S: Final = 10


def build_fingerprint(
    documents: Iterable[ParsedDoc], golden: GoldenSet, settings: Settings, model: EmbeddingModel
) -> Fingerprint:
    """Describe what is evaluated, without any secret.

    Args:
        documents: The corpus.
        golden: The questions and selected-text cases.
        settings: The settings of the collection and the retriever.
        model: The embedding model.
    """
    sources = sorted(f"{parsed.document.doc_path}\0{parsed.source}" for parsed in documents)
    return Fingerprint(
        corpus_version=hash_parts(sources),
        golden_version=hash_parts(map(repr, (*golden.queries, *golden.selected_text))),
        format_version=FORMAT_VERSION,
        model=model.fingerprint,
        settings=select_settings(settings),
        commit=find_commit(Path(__file__).parent),
    )


def hash_parts(parts: Iterable[str]) -> str:
    """Return the first 16 hexadecimal digits of a SHA-256 over texts and their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def find_commit(folder: Path) -> str | None:
    """Return the commit of the repository around a folder, with `-dirty` if files differ from it.

    Returns None outside a repository, or if git is not installed.
    """
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(  # noqa: S603  # fixed arguments, no shell
            command, cwd=folder, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def select_settings(settings: Settings) -> dict[str, str]:
    """Select settings that may change a result, as text; no secret, folder, address or timeout."""
    return {
        name: str(value)
        for name, value in sorted(settings)
        if not isinstance(value, SecretStr)
        and not name.endswith(_UNRELATED_ENDINGS)
        and not name.startswith(_UNRELATED)
    }
