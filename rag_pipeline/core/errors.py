"""All errors that this package raises on purpose. Import them from this module.

Adapters convert the errors of vendor libraries to these classes and keep the original as the cause.
The command line prints the message and exits with the `exit_code` of the class.
"""

from __future__ import annotations

import copyreg
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_ROOT: Final = r"(?:/|\\\\|[A-Za-z]:[\\/])"
_WORD: Final = r"[^\s'\"`,;:()\[\]<>]"
_END: Final = r"[^\s'\"`,;:()\[\]<>.]"
_PATH: Final = re.compile(
    rf"'{_ROOT}[^'\n]+'|\"{_ROOT}[^\"\n]+\"|`{_ROOT}[^`\n]+`"  # in quotes, also with spaces
    rf"|\b(?:file|sqlite)[\w+]*:/+{_WORD}*{_END}"
    rf"|(?<![\w:/.\\~-]){_ROOT}{_WORD}*{_END}(?:(?: {_WORD}+?){{1,2}}[/\\]{_WORD}*{_END})*"
)
_WORDS: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PASSWORD: Final = re.compile(r"(?<=://)[^/\s?#]+@")


def hide_places(message: str, name: str, known: Iterable[str] = ()) -> str:
    """Return a message without absolute paths, and without user names and passwords in URLs.

    Relative paths and other addresses are kept. In a path with spaces that is neither in quotes nor
    known, a part that begins with a space is recognized only if a slash follows within two words.

    Args:
        message: The message of an error.
        name: The text that replaces each path.
        known: Paths that are replaced in any case.
    """
    for path in sorted(known, key=len, reverse=True):
        message = re.sub(rf"{re.escape(path)}(?:[/\\]{_WORD}*{_END})?", lambda _: name, message)
    hidden = _PATH.sub(lambda _: name, message).replace(f"{name} {name}", name)
    return _PASSWORD.sub("", hidden)


def describe_kind(error: BaseException) -> str:
    """Return the kind of an error in words, such as `connect error` for a `ConnectError`."""
    words = _WORDS.sub(" ", type(error).__name__).split()
    return " ".join(word if word.isupper() else word.lower() for word in words)


class RagPipelineError(Exception):
    """Base class of all errors that this package raises on purpose.

    Attributes:
        code: Stable upper-case name of the error for programs, such as `STORE_LOCKED`.
        http_status: HTTP status that a web backend should answer with.
        exit_code: Exit code of the command line: 1 if the work failed, 2 if the usage or the
            configuration is wrong.
        transient: True if the same call may succeed later without any change.
        retry_after_s: Seconds to wait before the next try; None if no time is known.
        path_name: Text that replaces absolute paths in the public message, such as the name of the
            setting that they come from. If None, the paths are kept, because the caller sent them.
    """

    code = "RAG_PIPELINE_ERROR"
    http_status = 500
    exit_code = 1
    transient = False
    retry_after_s: float | None = None
    path_name: str | None = "a local path"

    @property
    def public_message(self) -> str:
        """The message as clients of a service may see it: without absolute paths and passwords."""
        if self.path_name is None:
            return str(self)
        known = (str(value) for value in vars(self).values() if isinstance(value, PurePath))
        return hide_places(str(self), self.path_name, known)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the data with which `pickle` and `copy` rebuild the error without its constructor.

        Without this method, they would call the constructor with the message instead of its own
        arguments. That fails, and a process pool that cannot unpickle an error stops working.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # pickle uses it, but the stubs lack it


class ConfigurationError(RagPipelineError):
    """A required setting or command line option is missing, or its value is invalid or rejected.

    Attributes:
        setting: Name of the setting or option, such as `QDRANT_URL` or `--site`.
    """

    code = "CONFIGURATION_ERROR"
    exit_code = 2

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        self.setting = setting
        self.path_name = "the given path"
        super().__init__(f"{setting}: {problem}. {remedy}")


class MissingDependencyError(RagPipelineError):
    """An optional Python package that the requested feature needs is not installed.

    Attributes:
        package: Name of the package that cannot be imported.
    """

    code = "DEPENDENCY_MISSING"
    exit_code = 2

    def __init__(self, package: str, extra: str | None = None) -> None:
        self.package = package
        wanted = package if extra is None else f"'rag-pipeline[{extra}]'"
        python = shlex.quote(sys.executable or "python")  # another pip may be first on the PATH
        super().__init__(
            f"the package {package} is not installed. Install it with `{python} -m pip install "
            f"{wanted}`"
        )


def require_packages(extra: str, *modules: str) -> None:
    """Check that the packages of an extra are installed, by the names of their modules.

    No module is imported.

    Raises:
        MissingDependencyError: One of them is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingDependencyError(module.replace("_", "-"), extra)


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


class EvaluationFileError(RagPipelineError):
    """The file of a stored evaluation report or baseline cannot be read.

    Attributes:
        path: Path of the file.
    """

    code = "EVALUATION_FILE_INVALID"
    exit_code = 2

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}. {remedy}")


class BaselineRefusedError(RagPipelineError):
    """An evaluation was not stored as the new baseline, because some of its questions failed.

    The baseline is the evaluation that later ones are compared with. A question fails if the system
    raises an error instead of answering it.

    Attributes:
        failure_count: Number of failed questions, including those about a selected text.
    """

    code = "BASELINE_REFUSED"

    def __init__(self, path: Path, failure_count: int, first_error: str) -> None:
        self.failure_count = failure_count
        super().__init__(
            f"the baseline {path} was not written, because {failure_count} questions or cases "
            f"failed (first error: {first_error:.200}). Fix the cause and evaluate again"
        )


class SweepCellError(RagPipelineError):
    """Documents failed while `rag-pipeline sweep` indexed the book for one combination of settings.

    A sweep compares such combinations, called cells, with a collection for each. A collection that
    lacks documents cannot be compared with the others, so the sweep stops.

    Attributes:
        cell: Name of the combination, made of its settings.
        doc_paths: Paths of the failed documents below the docs folder.
    """

    code = "SWEEP_CELL_INCOMPLETE"

    def __init__(self, cell: str, failures: Sequence[tuple[str, str]]) -> None:
        self.cell = cell
        self.doc_paths = tuple(doc_path for doc_path, _ in failures)
        named = ", ".join(self.doc_paths[:5]) + (", ..." if len(failures) > 5 else "")
        super().__init__(
            f"sweep cell {cell}: {len(failures)} document(s) failed ({named}), so its results "
            f"cannot be compared with the others (first error: {failures[0][1]:.200}). Fix the "
            "cause and run the sweep again; texts that are already embedded are reused"
        )


class GoldenSetError(RagPipelineError):
    """A file of evaluation questions is invalid or names pages or headings that do not exist.

    Attributes:
        path: Path of the file with the questions.
        problems: One sentence per problem. The message shows the first ten.
    """

    code = "TEST_SET_INVALID"
    exit_code = 2

    def __init__(
        self, path: Path, problems: Sequence[str], remedy: str = "Correct the file"
    ) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = f"; and {len(self.problems) - 10} more" if len(self.problems) > 10 else ""
        super().__init__(f"{path}: {shown}{more}. {remedy}")


class QueryError(RagPipelineError, ValueError):
    """A query or a batch of queries is invalid, for example because a filter has an unknown value.

    Subclasses cover frequent problems, such as an empty question. The class is also a ValueError,
    so that callers can catch it without importing this package.

    Attributes:
        position: Position of the query in its batch, from 1; None if the query is not in a batch.
    """

    code = "QUERY_INVALID"
    path_name = None
    http_status = 400
    exit_code = 2
    position: int | None = None

    def __str__(self) -> str:
        """Return the message, with `query N: ` before it if the query is number N of a batch."""
        message = super().__str__()
        return message if self.position is None else f"query {self.position}: {message}"


class QueryEmptyError(QueryError):
    """The question is empty or contains only white space."""

    code = "QUERY_EMPTY"

    def __init__(self) -> None:
        super().__init__("the question is empty. Write the question in words")


class QueryTooLongError(QueryError):
    """The question has more characters than the limit.

    Attributes:
        length: Number of characters of the question.
    """

    code = "QUERY_TOO_LONG"

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(
            f"the question has {length:,} characters, but the limit is {limit:,}. Shorten the "
            "question"
        )


class InvalidKError(QueryError):
    """The requested number of results (`top_k`) is not a whole number within its limits.

    Attributes:
        k: The value that was given.
    """

    code = "INVALID_K"

    def __init__(self, k: object, lowest: int, highest: int) -> None:
        self.k = k
        super().__init__(f"top_k must be a whole number from {lowest} to {highest}, not {k!r:.40}")


class SelectionMissingError(QueryError):
    """A query in selected-text mode contains no selected text.

    In this mode the answer is taken only from the text that the reader selected on the page.
    """

    code = "SELECTED_TEXT_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "selected-text mode needs a selected text, but selected_text is empty. Pass the text "
            "that the reader selected, or use normal mode"
        )


class SectionMissingError(QueryError):
    """The book has no page or section at an address.

    Attributes:
        url: The address that was asked for.
    """

    code = "SECTION_MISSING"
    http_status = 404

    def __init__(self, url: str, page_url: str | None = None) -> None:
        self.url = url
        advice = "Use an address from the table of contents or from the source of an answer"
        if page_url is not None:
            advice = f"The page {page_url} exists, but it has no such section. {advice}"
        super().__init__(f"the book has nothing at the address {url[:80]!r}. {advice}")


class ResultInvalidError(RagPipelineError):
    """A search failed because its results are invalid.

    Either a found passage breaks a rule that all results must follow, or the reranker (the model
    that reorders results) did not return one finite score for each passage.
    """

    code = "INVALID_RESULT"


class ValidationFailedError(RagPipelineError):
    """A query that was run in order to check its results failed at least one of the checks.

    For example, nothing was found, a result is invalid, or a second search found something else.

    Attributes:
        failed_checks: Names of the failed checks.
    """

    code = "VALIDATION_FAILED"
    http_status = 422

    def __init__(self, failed_checks: tuple[str, ...]) -> None:
        self.failed_checks = failed_checks
        super().__init__(
            f"the results break {len(failed_checks)} rule(s): {', '.join(failed_checks)}. Run "
            "`rag-pipeline audit` to check the index"
        )


REPAIR_S: Final = 30.0
"""Seconds after which it is worth trying again if someone has to ingest the book first."""


class EmbeddingError(RagPipelineError):
    """A text could not be embedded, or the vectors that were returned cannot be used.

    The embedding service failed, took too long or rejected the request, or the files of the local
    model are damaged. Subclasses cover some of these causes.
    """

    code = "EMBEDDING_FAILED"


class EmbeddingServiceError(EmbeddingError):
    """The embedding service cannot be reached, is overloaded or too slow, and all retries failed.

    The error is also raised without a request for some seconds after several failures in a row.
    """

    transient = True


class EmbeddingTimeoutError(EmbeddingServiceError):
    """The question was not embedded before the time limit of the whole query was over."""


class EmbeddingDimensionError(EmbeddingError):
    """The embedding model returned vectors of the wrong length, or a wrong number of vectors.

    Attributes:
        model: Name of the embedding model.
    """

    def __init__(self, model: str, expected: str, found: str) -> None:
        self.model = model
        super().__init__(
            f"embedding model {model} returned {found} instead of {expected}. Check "
            "EMBEDDING_MODEL and the service that runs the model"
        )


class EmbeddingTooLargeError(EmbeddingError):
    """A service refused a request because a text, or the number of texts, is too large for it."""


class StoreError(RagPipelineError):
    """The vector store, or a file that ingestion keeps beside it, cannot be used.

    Subclasses: the store is unreachable, too slow or locked, a collection is missing or was built
    with another model, or a stored point is invalid. All other causes, such as a damaged file or a
    full disk, have this class itself.
    """

    code = "STORE_FAILED"
    path_name = "DATA_DIR"


class StoreUnavailableError(StoreError):
    """The vector store cannot be used at the moment: unreachable, overloaded, too slow or locked.

    The error is also raised without a request for some seconds after several failures in a row.
    """

    code = "QDRANT_CONNECTION_ERROR"
    http_status = 503
    transient = True


class StoreTimeoutError(StoreUnavailableError):
    """The vector store did not respond within the time limit."""

    code = "QDRANT_TIMEOUT"
    http_status = 504


class StoreNotWritableError(StoreError):
    """The server of the store accepts no changes: full disk, read-only mode, lock or used-up quota.

    An ingestion stops at once, because every other document would fail in the same way.

    Args:
        place: Name and host of the server.
        said: The server's own words.
    """

    code = "STORE_NOT_WRITABLE"
    http_status = 503

    def __init__(self, place: str, said: str) -> None:
        super().__init__(
            f"{place} accepts no changes ({said}). Free space on its disk, or lift the lock or "
            "limit, and run `rag-pipeline ingest` again. Embeddings that were made are kept"
        )


class RequestTooLargeError(StoreError):
    """The server of the store accepts only smaller requests, so the content is sent in parts."""


class StoreLockedError(StoreUnavailableError):
    """Another process has the embedded store open, or another ingestion of the book is running."""

    code = "STORE_LOCKED"


class DatabaseUnavailableError(StoreError):
    """The database in Postgres cannot be read or written: it is unreachable or full."""

    code = "DATABASE_UNAVAILABLE"
    http_status = 503
    transient = True
    path_name = "DATABASE_URL"


class StoreDamagedError(StoreError):
    """The index is damaged: a file of the store cannot be read, or stored chunks are missing.

    A service is unavailable until the index is repaired. It needs no restart.
    """

    code = "STORE_DAMAGED"
    http_status = 503
    retry_after_s = REPAIR_S

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the index is damaged: {problem}. Run `rag-pipeline audit --repair` or `rag-pipeline "
            "ingest --rebuild`, which embed no text whose embedding is kept"
        )


class CollectionMissingError(StoreError):
    """The collection does not exist or is empty, usually because nothing has been ingested yet.

    A service is unavailable until then. It finds the collection without a restart.

    Attributes:
        collection: Name of the collection.
        where: Folder or address of the store.
    """

    code = "COLLECTION_MISSING"
    http_status = 503
    retry_after_s = REPAIR_S

    def __init__(self, collection: str, where: str | Path, others: str = "") -> None:
        self.collection = collection
        self.where = where
        super().__init__(
            f"collection {collection} in {where} does not exist or is empty. Run `rag-pipeline "
            f"ingest` first{others and f'. {others}'}"
        )


class IngestionRunningError(CollectionMissingError):
    """The collection is empty because its first ingestion is still running.

    Attributes:
        done: Number of documents that are indexed or have failed.
        total: Number of documents; 0 if they have not been counted yet.
    """

    code = "INGESTION_RUNNING"
    retry_after_s = 5.0

    def __init__(self, collection: str, where: str | Path, done: int, total: int) -> None:
        super().__init__(collection, where)
        self.done, self.total = done, total
        extent = f"{done} of {total} documents are done" if total else "it counts the documents"
        self.args = (f"an ingestion of the book is running: {extent}. Try again later",)


class EarlierCollectionMissingError(StoreError):
    """A rollback to the previous collection was requested, but the store has no previous one.

    Attributes:
        collection: Name of the collection.
        where: Folder or address of the store.
    """

    code = "COLLECTION_MISSING"
    http_status = 503

    def __init__(self, collection: str, where: str | Path) -> None:
        self.collection = collection
        self.where = where
        super().__init__(
            f"there is no previous collection {collection} in {where} to roll back to. Only "
            "`rag-pipeline ingest --rebuild` keeps the previous collection"
        )


class SpaceMismatchError(StoreError):
    """The collection was built with another embedding model or format than the settings ask for.

    The embedding space of the collection (provider, model, dimension, input limits and format
    version) differs from that of the settings, and vectors of different spaces cannot be compared.
    A service is unavailable until the collection is rebuilt. It needs no restart.

    Attributes:
        collection: Name of the collection.
    """

    code = "EMBEDDING_SPACE_MISMATCH"
    http_status = 503
    retry_after_s = REPAIR_S
    exit_code = 2

    def __init__(self, collection: str, stored: str, wanted: str, remedy: str) -> None:
        self.collection = collection
        super().__init__(
            f"collection {collection} was built with {stored}, but the settings ask for {wanted}. "
            "Run `rag-pipeline ingest --rebuild` to build a new collection next to the old one, or "
            f"{remedy}"
        )


class PayloadError(StoreError):
    """The payload of a stored point lacks a required field, or a field has an invalid value.

    Attributes:
        chunk_id: Chunk id of the point; `?` if the payload does not name it.
        field: Name of the payload field.
    """

    code = "INVALID_RESULT"

    def __init__(self, chunk_id: str, field: str, value: object) -> None:
        self.chunk_id = chunk_id
        self.field = field
        problem = "has no value" if value is None else f"has the invalid value {value!r:.60}"
        super().__init__(
            f"the index is damaged: in the stored chunk {chunk_id}, the payload field {field} "
            f"{problem}. Run `rag-pipeline audit --repair`"
        )


class AnswerError(RagPipelineError):
    """No complete answer was received from the answer model.

    The answer was empty, its stream was closed early, or the service rejected the request or sent a
    malformed response. Subclasses cover two more causes: the service is unavailable, or the answer
    took too long.
    """

    code = "ANSWER_FAILED"
    http_status = 502


class AnswerServiceError(AnswerError):
    """The service of the answer model cannot be reached, is overloaded, or broke off its answer.

    The request was retried before, unless the answer had already begun. The error is also raised
    without a request for some seconds after several failures in a row.
    """

    code = "ANSWER_SERVICE_UNAVAILABLE"
    http_status = 503
    transient = True


class AnswerContextError(AnswerError):
    """The prompt is longer than the context of the answer model."""

    code = "ANSWER_CONTEXT_EXCEEDED"


class AnswerTimeoutError(AnswerError):
    """The answer was not written in time.

    The model sent no text within ANSWER_TIMEOUT_S seconds, or the service reached its own limit.
    """

    code = "ANSWER_TIMEOUT"
    http_status = 504


class QuestionLogError(RagPipelineError):
    """The question log cannot be read or written: unreachable, locked, full or damaged."""

    code = "QUESTION_LOG_FAILED"
    http_status = 503
    transient = True

    @property
    def public_message(self) -> str:
        """A fixed message, because that of a database can name its host and user."""
        return "The question log cannot be used now. Try again later."
