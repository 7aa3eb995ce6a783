"""The fingerprint of an evaluation: a record of everything that its result depends on."""

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

# Endings and beginnings of the names of settings that change no result:
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
    """Build the fingerprint of an evaluation from everything that its result depends on.

    The fingerprint contains no secrets and no local paths. The order of the documents and the
    path of the golden set do not change it.

    Args:
        documents: All documents of the corpus.
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
    """Return the first 16 hexadecimal digits of the SHA-256 hash of a sequence of texts.

    The lengths of the texts are hashed too, so that ("ab", "c") and ("a", "bc") differ.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def find_commit(folder: Path) -> str | None:
    """Return the current commit of the git repository that contains a folder.

    `-dirty` is appended if tracked files differ from the commit. The result is None outside a
    repository, or if git is not installed or does not answer.
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
    """Return the settings that may change the result of an evaluation, as text by name.

    Secrets, folders, addresses, timeouts and settings of other parts (such as logging) are left
    out.
    """
    return {
        name: str(value)
        for name, value in sorted(settings)
        if not isinstance(value, SecretStr)
        and not name.endswith(_UNRELATED_ENDINGS)
        and not name.startswith(_UNRELATED)
    }
