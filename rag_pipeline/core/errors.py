"""Every error this package raises on purpose: each names the culprit and the mend in one line.

Adapters turn vendor errors into these with `from`; the command line prints the message and exits
with `exit_code`.
"""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import DocFailure


class RagPipelineError(Exception):
    """Base of all errors raised on purpose.

    Attributes:
        code: Stable upper-case name for machines.
        http_status: Status a web backend answers with.
        exit_code: 1 when the work fell short, 2 for bad usage or configuration.
        transient: True when the same call may succeed later.
        retry_after_s: How long a service asked to wait; None where none did.
    """

    code = "RAG_PIPELINE_ERROR"
    http_status = 500
    exit_code = 1
    transient = False
    retry_after_s: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the constructor, whose arguments are not kept: a process pool that cannot
        read an error back breaks for all its callers.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # pickle's own way, not in the stubs


class ConfigurationError(RagPipelineError):
    """A setting is missing or wrong."""

    code = "CONFIGURATION_ERROR"
    exit_code = 2

    def __init__(self, setting: str, problem: str, mend: str) -> None:
        self.setting = setting
        super().__init__(f"{setting}: {problem}. {mend}")


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


class EmbeddingError(RagPipelineError):
    """The embedding model or service failed."""

    code = "EMBEDDING_FAILED"


class EmbeddingServiceError(EmbeddingError):
    """The embedding service was not reached or refused, retries spent."""

    transient = True


class EmbeddingTimeoutError(EmbeddingServiceError):
    """The embedding service did not answer in the time that the whole query has."""


class EmbeddingDimensionError(EmbeddingError):
    """Vectors came back with another length or count than asked for."""

    def __init__(self, model: str, expected: str, found: str) -> None:
        self.model = model
        super().__init__(
            f"embedding model {model} returned {found} where {expected} was expected. Check "
            "EMBEDDING_MODEL and the service behind it"
        )


class StoreError(RagPipelineError):
    """The vector store failed."""

    code = "STORE_FAILED"


class StoreUnavailableError(StoreError):
    """The vector store cannot be reached."""

    code = "QDRANT_CONNECTION_ERROR"
    http_status = 503
    transient = True


class StoreTimeoutError(StoreUnavailableError):
    """The vector store did not answer in time."""

    code = "QDRANT_TIMEOUT"
    http_status = 504


class StoreLockedError(StoreUnavailableError):
    """Another process holds the embedded store."""

    code = "STORE_LOCKED"


class CollectionMissingError(StoreError):
    """Nothing has been ingested into the collection yet."""

    code = "COLLECTION_MISSING"

    def __init__(self, collection: str, where: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} in {where} does not exist or is empty. Run `rag-pipeline "
            "ingest` first"
        )


class EarlierCollectionMissingError(StoreError):
    """There is no collection to roll back to."""

    code = "COLLECTION_MISSING"

    def __init__(self, collection: str, where: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} in {where} has no earlier one to roll back to. Only "
            "`rag-pipeline ingest --rebuild` keeps one"
        )


class SpaceMismatchError(StoreError):
    """The collection was built with another model, dimension or format version."""

    code = "EMBEDDING_SPACE_MISMATCH"
    exit_code = 2

    def __init__(self, collection: str, stored: str, wanted: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} was built with {stored}, the settings ask for {wanted}. "
            "Run `rag-pipeline ingest --rebuild` to build it anew beside the old one, or "
            "restore the old settings"
        )


class RebuildIncompleteError(RagPipelineError):
    """Documents failed in a rebuild, so the new collection was not put in use."""

    code = "REBUILD_INCOMPLETE"

    def __init__(self, failures: Sequence[DocFailure]) -> None:
        self.doc_paths = tuple(failure.doc_path for failure in failures)
        reasons = "; ".join(failure.message.rstrip(".") for failure in failures[:3])
        more = "; ..." if len(failures) > 3 else ""
        super().__init__(
            f"the new collection lacks {len(failures)} document(s) that failed ({reasons}{more}); "
            "the one in use stays in use. Mend them and run `rag-pipeline ingest --rebuild` again"
        )


class PayloadError(StoreError):
    """A point's payload does not keep the contract of core.payload."""

    code = "INVALID_RESULT"

    def __init__(self, chunk_id: str, field: str, value: object) -> None:
        self.chunk_id = chunk_id
        self.field = field
        super().__init__(
            f"point {chunk_id}: payload field {field} is missing or wrong ({value!r:.60}). Run "
            "`rag-pipeline audit --repair`"
        )


class QueryError(RagPipelineError, ValueError):
    """A query is not usable; a ValueError as well, for callers that know no class of ours.

    Attributes:
        position: Which query of a batch, from 1; None for a query by itself.
    """

    code = "QUERY_INVALID"
    http_status = 400
    exit_code = 2
    position: int | None = None

    def __str__(self) -> str:
        """The message, with the query's position before it where there is one."""
        message = super().__str__()
        return message if self.position is None else f"query {self.position}: {message}"


class QueryEmptyError(QueryError):
    """The question is empty or white space alone."""

    code = "QUERY_EMPTY"

    def __init__(self) -> None:
        super().__init__("the question is empty. Ask something in words")


class QueryTooLongError(QueryError):
    """The question has too many characters."""

    code = "QUERY_TOO_LONG"

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(
            f"the question has {length:,} characters, the limit is {limit:,}. Shorten it"
        )


class InvalidKError(QueryError):
    """The number of results asked for is out of its bounds."""

    code = "INVALID_K"

    def __init__(self, k: object, lowest: int, highest: int) -> None:
        self.k = k
        super().__init__(f"top_k must be a whole number from {lowest} to {highest}, not {k!r:.40}")


class SelectionMissingError(QueryError):
    """Selected-text mode was asked for without a selection."""

    code = "SELECTED_TEXT_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "selected-text mode needs selected_text, and it is empty. Pass the selection, or ask "
            "in normal mode"
        )


class ResultInvalidError(RagPipelineError):
    """What a store or a reranker answered is not what was asked for."""

    code = "INVALID_RESULT"


class ValidationFailedError(RagPipelineError):
    """Results were found but broke a rule that every result must keep."""

    code = "VALIDATION_FAILED"
    http_status = 422

    def __init__(self, failed_checks: tuple[str, ...]) -> None:
        self.failed_checks = failed_checks
        super().__init__(
            f"results break {len(failed_checks)} rules: {', '.join(failed_checks)}. Run "
            "`rag-pipeline audit`"
        )


class AnswerError(RagPipelineError):
    """The answer model gave nothing that can be used."""

    code = "ANSWER_FAILED"
    http_status = 502


class AnswerServiceError(AnswerError):
    """The answer model's service was not reached or failed, retries spent."""

    code = "ANSWER_SERVICE_UNAVAILABLE"
    http_status = 503
    transient = True


class AnswerTimeoutError(AnswerError):
    """The answer was not complete within ANSWER_TIMEOUT_S."""

    code = "ANSWER_TIMEOUT"
    http_status = 504


class EvaluationFileError(RagPipelineError):
    """A kept report or baseline cannot be read."""

    code = "EVALUATION_FILE_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problem: str, mend: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}. {mend}")


class BaselineRefusedError(RagPipelineError):
    """An evaluation in which the system failed was to become the baseline."""

    code = "BASELINE_REFUSED"

    def __init__(self, path: Path, failure_count: int, first_error: str) -> None:
        self.failure_count = failure_count
        super().__init__(
            f"{path}: not written, since {failure_count} questions or cases failed and are no "
            f"measure ({first_error:.200}). Mend the cause and evaluate again"
        )


class SweepCellError(RagPipelineError):
    """Documents failed where the collection of a sweep's cell was built."""

    code = "SWEEP_CELL_INCOMPLETE"

    def __init__(self, cell: str, failures: Sequence[tuple[str, str]]) -> None:
        self.cell = cell
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        named = ", ".join(self.doc_paths[:5]) + (", ..." if len(failures) > 5 else "")
        super().__init__(
            f"sweep cell {cell}: {len(failures)} document(s) failed ({named}), so that it does not "
            f"compare: {failures[0][1]:.200}. Mend that and sweep again; what was embedded is kept"
        )


class GoldenSetError(RagPipelineError):
    """A file of evaluation questions is not usable, or names pages or headings not there."""

    code = "TEST_SET_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = f"; and {len(self.problems) - 10} more" if len(self.problems) > 10 else ""
        super().__init__(f"{path}: {shown}{more}. Mend the file, or the page that it names")


class MissingDependencyError(RagPipelineError):
    """An optional package is not installed."""

    code = "DEPENDENCY_MISSING"
    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        super().__init__(
            f"the package {package} is not installed. Install it with `pip install "
            f"'rag-pipeline[{extra}]'`"
        )
