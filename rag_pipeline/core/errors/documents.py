"""Errors of documents, of the docs folder and of ingestion's stored stage outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors.base import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DOCUMENT_MISSING: Final = "DocumentMissing"
"""Value of `DocFailure.error` for a document that was requested by name but does not exist."""


class DocumentIdError(RagPipelineError):
    """A text is not a valid document id, the relative path of a file below the docs folder.

    Attributes:
        text: The text that was given as the document id.
    """

    code = "DOCUMENT_ID_INVALID"
    exit_code = 2

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(
            f"{text[:80]!r} is not a valid document id: {problem}. Use the path of the file below "
            "the docs folder, such as module-1/intro.md"
        )


class DocsFolderError(RagPipelineError):
    """The docs folder is missing, cannot be read, or contains no file that Docusaurus would build.

    Attributes:
        docs_dir: Path of the docs folder.
    """

    code = "DOCS_FOLDER_INVALID"
    path_name = "DOCS_DIR"
    exit_code = 2

    def __init__(self, docs_dir: Path, problem: str) -> None:
        self.docs_dir = docs_dir
        super().__init__(
            f"the docs folder {docs_dir} {problem}. Set DOCS_DIR (or --docs-dir) to the folder "
            "with the Markdown files, or run `rag-pipeline init` in the folder of the site"
        )


class DocumentError(RagPipelineError):
    """One document cannot be processed. The other documents are not affected.

    This is the base class of all errors of a single document.

    Attributes:
        doc_id: Path of the document below the docs folder.
    """

    code = "DOCUMENT_INVALID"

    def __init__(self, doc_id: str, message: str) -> None:
        self.doc_id = doc_id
        super().__init__(f"{doc_id}: {message}")


class DocumentReadError(DocumentError):
    """The file of a document cannot be read, for example because of its permissions."""

    code = "DOCUMENT_UNREADABLE"


class FrontMatterError(DocumentError):
    """The front matter of a document is not valid YAML, or one of its values has a wrong type.

    Front matter is the YAML between `---` lines at the start of a Markdown file.

    Attributes:
        line: Line of the problem in the file, 1-based; None if it is not known.
    """

    code = "FRONT_MATTER_INVALID"

    def __init__(self, doc_id: str, problem: str, line: int | None = None) -> None:
        self.line = line
        where = f"line {line}: " if line is not None else ""
        super().__init__(doc_id, f"{where}front matter: {problem}")


class LedgerConflictError(DocumentError):
    """Another process has indexed or deleted a document since this run read the ledger.

    Its entry in the ledger stays as the other process wrote it.
    """

    code = "LEDGER_CONFLICT"

    def __init__(self, doc_id: str) -> None:
        problem = "another process has changed its entry in the ledger since this run began"
        super().__init__(doc_id, f"{problem}. The next ingest compares the document again")


class PlanOutdatedError(RagPipelineError):
    """A worker sees other documents, settings or another collection than the plan of its run.

    The worker has changed nothing. The next plan includes its documents again.
    """

    code = "PLAN_OUTDATED"
    path_name = "DOCS_DIR"

    def __init__(self, problem: str) -> None:
        super().__init__(f"this worker cannot carry out the plan: {problem}")


class RebuildIncompleteError(RagPipelineError):
    """Documents failed while a new collection was built, so queries go on using the old one.

    Attributes:
        doc_paths: Paths of the failed documents below the docs folder.
    """

    code = "REBUILD_INCOMPLETE"

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        reasons = "; ".join(message.rstrip(".") for _, message in failures[:3])
        more = "; ..." if len(failures) > 3 else ""
        super().__init__(
            f"{len(failures)} document(s) failed ({reasons}{more}), so the new collection is "
            "incomplete and the current one stays in use. Fix the cause and run `rag-pipeline "
            "ingest --rebuild` again"
        )
