"""Errors of documents and of the docs folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors.base import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class DocumentIdError(RagPipelineError):
    """A text is not a document id."""

    code = "DOCUMENT_ID_INVALID"
    exit_code = 2

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(
            f"document id {text[:80]!r} is not usable: {problem}. Use the path below the docs "
            "folder, such as module-1/intro.md"
        )


class DocsFolderError(RagPipelineError):
    """The docs folder is missing, unreadable or holds no document."""

    code = "DOCS_FOLDER_INVALID"
    exit_code = 2

    def __init__(self, docs_dir: Path, problem: str) -> None:
        self.docs_dir = docs_dir
        super().__init__(
            f"docs folder {docs_dir}: {problem}. Set DOCS_DIR (or --docs-dir) to the folder with "
            "the Markdown files"
        )


class DocumentError(RagPipelineError):
    """One document cannot be processed; the others can."""

    code = "DOCUMENT_INVALID"

    def __init__(self, doc_id: str, message: str) -> None:
        self.doc_id = doc_id
        super().__init__(f"{doc_id}: {message}")


class DocumentReadError(DocumentError):
    """A document's file cannot be read."""

    code = "DOCUMENT_UNREADABLE"


class FrontMatterError(DocumentError):
    """A document's front matter is not valid YAML or has a value of a wrong type; the message
    names the line.
    """

    code = "FRONT_MATTER_INVALID"

    def __init__(self, doc_id: str, problem: str, line: int | None = None) -> None:
        self.line = line
        where = f"line {line}: " if line is not None else ""
        super().__init__(doc_id, f"{where}front matter: {problem}")


class ArtifactMissingError(DocumentError):
    """A stage was asked for without the one before it, and nothing is kept of that one."""

    code = "ARTIFACT_MISSING"

    def __init__(self, doc_id: str, stage: str) -> None:
        self.stage = stage
        super().__init__(doc_id, f"nothing is kept of its stage {stage}. Materialize {stage} too")


class ArtifactStaleError(DocumentError):
    """A stage was asked for without the one before it, and what is kept of that one is of another
    text or of other settings.
    """

    code = "ARTIFACT_STALE"

    def __init__(self, doc_id: str, stage: str) -> None:
        self.stage = stage
        problem = f"what is kept of its stage {stage} was made of another text or other settings"
        super().__init__(doc_id, f"{problem}. Materialize {stage} too")


class RebuildIncompleteError(RagPipelineError):
    """Documents failed in a rebuild, so the new collection was not put in use."""

    code = "REBUILD_INCOMPLETE"

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        reasons = "; ".join(message.rstrip(".") for _, message in failures[:3])
        more = "; ..." if len(failures) > 3 else ""
        super().__init__(
            f"the new collection lacks {len(failures)} document(s) that failed ({reasons}{more}); "
            "the one in use stays in use. Fix them and run `rag-pipeline ingest --rebuild` again"
        )
