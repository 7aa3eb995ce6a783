"""Which files of a docs folder Docusaurus builds, and what changed of them; reads only new files.

Belongs here: walking, hashing, leaving out drafts. Reading a document's content: parsing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.docusaurus import MARKDOWN_SUFFIXES, is_doc_folder_name, is_doc_name
from rag_pipeline.core.errors import DocsFolderError, DocumentIdError, DocumentReadError
from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, DocFailure
from rag_pipeline.ingestion.markdown.front_matter import is_draft
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import KnownFile

_STAGE: Final = "discovery"

_Folders: TypeAlias = frozenset[tuple[int, int]]
"""Device and inode of each folder above the one looked at."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a docs folder holds, each in the order of document ids.

    Attributes:
        docs: Pages that are built.
        failures: Files and folders that could not be looked at; a folder's path ends with `/`, but
            not that of a link that could not be followed, which may lead to either.
        drafts: Files with `draft: true`, which are not built; to be remembered as known.
    """

    docs: tuple[DiscoveredDoc, ...]
    failures: tuple[DocFailure, ...]
    drafts: tuple[DiscoveredDoc, ...] = ()

    def is_hidden(self, doc_id: str) -> bool:
        """Tell whether a document may be there unseen: it or a folder above it cannot be read."""
        return any(
            doc_id == failure.doc_path or doc_id.startswith(failure.doc_path.rstrip("/") + "/")
            for failure in self.failures
        )


@dataclass(slots=True)
class _Walk:
    known: Mapping[DocId, KnownFile]
    pending: list[tuple[Path, str, _Folders]]
    docs: list[DiscoveredDoc] = field(default_factory=list)
    drafts: list[DiscoveredDoc] = field(default_factory=list)
    failures: list[DocFailure] = field(default_factory=list)

    def fail(self, doc_path: str, error: str, problem: str) -> None:
        shown = doc_path.encode("utf-8", "backslashreplace").decode()
        self.failures.append(DocFailure(shown, _STAGE, error, f"{shown}: {problem}"))


def discover_docs(docs_dir: Path, known: Mapping[DocId, KnownFile] | None = None) -> Discovery:
    """Find the pages that Docusaurus would build.

    Symbolic links are followed; one that leads back into its own path is reported and passed over.

    Args:
        docs_dir: Folder that holds the documents.
        known: Files as an earlier call found them: unchanged in size and time, they are not read.

    Raises:
        DocsFolderError: The folder is missing, unreadable or holds no Markdown file at all.
    """
    if not docs_dir.is_dir():
        raise DocsFolderError(docs_dir, "is a file" if docs_dir.exists() else "does not exist")
    walk = _Walk(known or {}, [(docs_dir, "", frozenset())])
    while walk.pending:
        _look_at_folder(walk, *walk.pending.pop())
    if not (walk.docs or walk.drafts or walk.failures):
        suffixes = " or ".join(MARKDOWN_SUFFIXES)
        raise DocsFolderError(docs_dir, f"holds no {suffixes} file that Docusaurus would build")
    return Discovery(
        tuple(sorted(walk.docs, key=lambda doc: doc.doc_id)),
        tuple(sorted(walk.failures, key=lambda failure: failure.doc_path)),
        tuple(sorted(walk.drafts, key=lambda doc: doc.doc_id)),
    )


def _look_at_folder(walk: _Walk, folder: Path, prefix: str, ancestors: _Folders) -> None:
    try:
        status = folder.stat()
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError as error:
        if not prefix:
            raise DocsFolderError(folder, f"cannot be read ({error.strerror})") from error
        walk.fail(prefix, DocumentReadError.code, f"cannot be read ({error.strerror})")
        return
    identity = (status.st_dev, status.st_ino)
    if identity in ancestors:
        problem = "a symbolic link leads back to a folder above it"
        walk.fail(prefix, DocumentReadError.code, problem)
        return
    for entry in entries:
        doc_path = prefix + entry.name
        try:
            if entry.is_dir():
                if is_doc_folder_name(entry.name):
                    walk.pending.append((Path(entry.path), doc_path + "/", ancestors | {identity}))
            elif is_doc_name(entry.name):
                _look_at_file(walk, entry, doc_path)
        except OSError as error:
            walk.fail(doc_path, DocumentReadError.code, f"cannot be read ({error.strerror})")
        except DocumentIdError as error:
            walk.fail(doc_path, error.code, str(error))


def _look_at_file(walk: _Walk, entry: os.DirEntry[str], doc_path: str) -> None:
    status = entry.stat()
    if not stat.S_ISREG(status.st_mode):
        return
    doc_id = parse_doc_id(doc_path)
    known = walk.known.get(doc_id)
    unchanged = known is not None and (known.size_bytes, known.mtime_ns) == (
        status.st_size,
        status.st_mtime_ns,
    )
    if known is not None and unchanged:
        digest, draft = known.sha256, known.draft
    else:
        content = Path(entry.path).read_bytes()
        digest, draft = hashlib.sha256(content).hexdigest(), is_draft(normalize_source(content))
    doc = DiscoveredDoc(doc_id, Path(entry.path), digest, status.st_size, status.st_mtime_ns)
    (walk.drafts if draft else walk.docs).append(doc)
