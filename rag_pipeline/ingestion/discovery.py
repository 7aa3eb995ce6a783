"""Find and hash the files of a book that Docusaurus would build.

Files that have not changed since the last scan are not read again.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.errors import (
    ConfigurationError,
    DocsFolderError,
    DocumentIdError,
    DocumentReadError,
)
from rag_pipeline.core.ids import DocId, parse_doc_id
from rag_pipeline.core.models import DiscoveredDoc, DocFailure
from rag_pipeline.core.site.addresses import PagePatterns, make_patterns
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.site.files import SiteFileError, find_root, is_inside, read_site_file
from rag_pipeline.core.sources import Source, SourceKind, find_place, find_source
from rag_pipeline.ingestion.cards import list_indexes
from rag_pipeline.ingestion.markdown.source import Visibility, find_visibility, normalize_source
from rag_pipeline.ingestion.site.manifest import read_manifest
from rag_pipeline.ingestion.splicing import hash_content, read_imports, shows_cards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.protocols import LedgerEntry

_STAGE: Final = "discovery"

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_Folders: TypeAlias = frozenset[tuple[int, int]]
"""Device and inode numbers of all folders above a folder, to detect loops of symbolic links."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of a scan of a book's folders. Each tuple is sorted by path.

    Attributes:
        docs: The documents that Docusaurus would build.
        failures: Files and folders that could not be read. The path of a folder ends with `/`; the
            path of a broken symbolic link does not, because its target is unknown.
        drafts: Files with `draft: true`, which Docusaurus does not build.
        unlisted: Files with `unlisted: true`, which only readers with the address see. Empty if
            they are indexed.
        notes: Settings of the site that the pipeline does not follow.
    """

    docs: tuple[DiscoveredDoc, ...]
    failures: tuple[DocFailure, ...]
    drafts: tuple[DiscoveredDoc, ...] = ()
    unlisted: tuple[DiscoveredDoc, ...] = ()
    notes: tuple[str, ...] = ()

    def is_hidden(self, doc_id: str) -> bool:
        """Return True if the document may exist although the scan could not see it.

        This is the case if the file, or a folder above it, is among the failures.
        """
        return any(
            doc_id == failure.doc_path or doc_id.startswith(failure.doc_path.rstrip("/") + "/")
            for failure in self.failures
        )


KnownFile: TypeAlias = "LedgerEntry | DiscoveredDoc"
"""Size, time and hash of a file from the previous scan; an unchanged file is not read again."""


@dataclass(slots=True)
class _Walk:
    """The state of a walk through the docs folder: folders still to read, and what was found.

    `sources` are all sources of the book, and `source` is the one that is being read; `patterns`
    are its files that become pages.
    """

    known: Mapping[DocId, KnownFile]
    sources: Sequence[Source] = ()
    source: Source | None = None
    root: Path = Path()
    patterns: PagePatterns = field(default_factory=PagePatterns)
    built: Mapping[str, bytes] = field(default_factory=dict)
    pending: list[tuple[Path, str, _Folders]] = field(default_factory=list)
    found: dict[Visibility, list[DiscoveredDoc]] = field(
        default_factory=lambda: {visibility: [] for visibility in Visibility}
    )
    failures: list[DocFailure] = field(default_factory=list)

    def fail(self, doc_path: str, error: str, problem: str) -> None:
        # A name may contain line ends and bytes that are not UTF-8, but a message is one line.
        shown = _CONTROL.sub(lambda found: ascii(found.group())[1:-1], doc_path)
        shown = shown.encode("utf-8", "backslashreplace").decode()
        self.failures.append(DocFailure(shown, _STAGE, error, f"{shown}: {problem}"))


def discover_docs(
    docs_dir: Path,
    known: Mapping[DocId, KnownFile] | None = None,
    manifest: Path | None = None,
    sources: Sequence[Source] = (),
    *,
    with_unlisted: bool = False,
) -> Discovery:
    """Find the documents that Docusaurus shows from a docs folder, or from several sources.

    Symbolic links are followed inside the root of the site. A link to a folder above itself, or out
    of the root, is skipped and listed as a failure.

    Args:
        docs_dir: The docs folder. Only its sources are read, if there are any.
        known: The files as an earlier scan found them. A file with the same size and modification
            time is not read; it keeps the known hash.
        manifest: The `rag-manifest.json` of the built site. With it, all files are read.
        sources: The sources of the book; empty if it has only its docs folder.
        with_unlisted: True if pages with `unlisted: true` are documents too.

    Returns:
        The documents, drafts, unlisted pages and failures. A file or folder that cannot be read is
        a failure and does not stop the scan.

    Raises:
        DocsFolderError: The docs folder is missing, unreadable or contains no Markdown file.
        ConfigurationError: The manifest is missing or damaged, the folder of a source is missing,
            or a document belongs to two sources.
    """
    walk = _Walk({} if manifest else known or {}, sources)
    folders = [(source, _choose_folder(docs_dir, source)) for source in sources or (None,)]
    for source, folder in folders:
        walk.source, walk.root = source, find_root(folder)
        walk.patterns = make_patterns(source and source.include, source and source.exclude)
        walk.built = read_manifest(manifest, docs_dir, source) if manifest else {}
        walk.pending.append((folder, source.prefix if source else "", frozenset()))
        while walk.pending:
            _read_folder(walk, *walk.pending.pop())
        if source is None or source.kind is SourceKind.DOCS:
            for place, text in list_indexes(folder, walk.root, source):
                doc_id = parse_doc_id((source.prefix if source else "") + place)
                data = text.encode("utf-8", "surrogatepass")
                digest, path = hash_content(data, {}), folder / place
                walk.found[Visibility.LISTED].append(
                    DiscoveredDoc(doc_id, path, digest, len(data), -1, source=source, written=data)
                )
    if not (any(walk.found.values()) or walk.failures):
        suffixes = " or ".join(MARKDOWN_SUFFIXES)
        problem = f"contains no {suffixes} file that Docusaurus would build"
        raise DocsFolderError(docs_dir, problem)
    listed, unlisted, drafts = (walk.found[visibility] for visibility in Visibility)
    if with_unlisted:
        listed, unlisted = listed + unlisted, []
    return Discovery(
        tuple(sorted(listed, key=lambda doc: doc.doc_id)),
        tuple(sorted(walk.failures, key=lambda failure: failure.doc_path)),
        tuple(sorted(drafts, key=lambda doc: doc.doc_id)),
        tuple(sorted(unlisted, key=lambda doc: doc.doc_id)),
    )


def _choose_folder(docs_dir: Path, source: Source | None) -> Path:
    """Return the folder that decides which pages a source has.

    Raises:
        DocsFolderError: The docs folder is missing.
        ConfigurationError: The folder of the source is missing.
    """
    folder = docs_dir if source is None else source.fallback or source.folder
    if folder.is_dir():
        root = find_root(folder)
        if is_inside(folder, root):
            return folder
        problem = f"is a link that leads out of {root}. Name the folder itself"
    else:
        problem = "is a file" if folder.exists() else "does not exist"
    if source is None or not source.prefix:
        raise DocsFolderError(folder, problem)
    remedy = "Restore it, or run `rag-pipeline init` to read the site's sources again"
    raise ConfigurationError(
        "SOURCES", f"the folder {folder} of the source {source} {problem}", remedy
    )


def _read_folder(walk: _Walk, folder: Path, prefix: str, ancestors: _Folders) -> None:
    """Add the documents in one folder to the walk, and queue its subfolders.

    `prefix` is the start of the ids of its documents: for the docs folder it is empty, and for a
    folder below it, it is the path from there with `/` at the end.
    """
    try:
        status = folder.stat()
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError as error:
        if not ancestors:
            raise DocsFolderError(folder, f"cannot be read ({error.strerror})") from error
        problem = f"the folder cannot be read ({error.strerror}). Check its permissions"
        walk.fail(prefix, DocumentReadError.code, problem)
        return
    identity = (status.st_dev, status.st_ino)
    if identity in ancestors:
        problem = "this symbolic link points to a folder above itself. Remove the link"
        walk.fail(prefix, DocumentReadError.code, problem)
        return
    for entry in entries:
        doc_path = prefix + entry.name
        try:
            _read_entry(walk, entry, doc_path, ancestors | {identity})
        except OSError as error:
            problem = f"it cannot be read ({error.strerror}). Check the file and its permissions"
            if entry.is_symlink() and error.errno in {errno.ENOENT, errno.ELOOP}:
                problem = "this symbolic link leads to no file. Correct or remove the link"
            walk.fail(doc_path, DocumentReadError.code, problem)
        except DocumentIdError as error:
            walk.fail(doc_path, error.code, str(error))


def _read_entry(walk: _Walk, entry: os.DirEntry[str], doc_path: str, ancestors: _Folders) -> None:
    """Add a page to the walk, or queue a folder. A bad link is no error if it cannot be either.

    Raises:
        OSError: The entry is a link that leads nowhere, or out of the root of the site.
    """
    place = find_place(walk.source, doc_path)
    if walk.source is not None and walk.source.kind is SourceKind.API:
        may_be_folder, may_be_page = False, place in (walk.source.include or ())
    else:
        may_be_folder = walk.patterns.reads_folder(entry.name)
        may_be_page = walk.patterns.builds(place)
    if not may_be_folder and not may_be_page:
        return
    if entry.is_symlink() and not is_inside(Path(entry.path), walk.root):
        entry.stat()
        raise SiteFileError(Path(entry.path), f"its link leads out of {walk.root}")
    if not entry.is_dir():
        if may_be_page:
            _read_file(walk, entry, doc_path)
    elif may_be_folder:
        walk.pending.append((Path(entry.path), doc_path + "/", ancestors))


def _read_file(walk: _Walk, entry: os.DirEntry[str], doc_path: str) -> None:
    """Add one file, or its translation, to what the walk found.

    The file is read only if its size or time changed, or if its text depends on other files.
    """
    path, status = _find_translation(walk, entry, doc_path)
    if not stat.S_ISREG(status.st_mode):
        return
    doc_id = parse_doc_id(doc_path)
    if walk.source and find_source(walk.sources, doc_id) is not walk.source:
        other = find_source(walk.sources, doc_id)
        problem = (
            f"the document {doc_id} of the source {walk.source} has an id of the source {other}"
        )
        remedy = f"Give {other} another `prefix`, such as `@site/{other.prefix if other else ''}`"
        raise ConfigurationError("SOURCES", problem, remedy)
    place = find_place(walk.source, doc_path)
    built = walk.built.get(place, b"")
    known = walk.known.get(doc_id)
    unchanged = known is not None and (known.size_bytes, known.mtime_ns) == (
        status.st_size,
        status.st_mtime_ns,
    )
    mtime_ns = status.st_mtime_ns
    if known is not None and unchanged:
        digest, visibility = known.sha256, Visibility.LISTED
    else:
        content = read_site_file(path, walk.root)
        imported = read_imports(place, path, content, built, walk.source)
        digest = hash_content(content, imported)
        is_page = walk.source is None or walk.source.kind is not SourceKind.API
        visibility = find_visibility(normalize_source(content)) if is_page else Visibility.LISTED
        if imported or shows_cards(content):
            mtime_ns = -1  # a later scan reads the file again, to see changes of the other files
    doc = DiscoveredDoc(doc_id, path, digest, status.st_size, mtime_ns, built, walk.source)
    walk.found[visibility].append(doc)


def _find_translation(
    walk: _Walk, entry: os.DirEntry[str], doc_path: str
) -> tuple[Path, os.stat_result]:
    """Return the file of a page in the locale that is being read, or else in the default locale."""
    if walk.source and walk.source.fallback:
        translated = walk.source.folder / find_place(walk.source, doc_path)
        with suppress(FileNotFoundError, NotADirectoryError):
            return translated, translated.stat()
    return Path(entry.path), entry.stat()
