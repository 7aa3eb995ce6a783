"""docs/reference/errors.md: one row per error code, with its cause and its remedy."""

from __future__ import annotations

from rag_pipeline.core import errors
from reference.docstrings import NOTE, read_summary, write_table

_HEAD = """\
# Errors

An error of a command is one line: what is wrong, and what to do. With `--json` it is
`{"error": {"code": ..., "message": ...}}` on standard output. In Python, each error is a subclass
of `RagPipelineError`. [Troubleshooting](../troubleshooting.md) describes the usual situations, and
[The service](service.md#errors) has further codes of HTTP.

- HTTP: the status that a web service should answer with (`error.http_status`). A `*` means that
  the same call may succeed later (`error.transient`). `error.retry_after_s` is then the number of
  seconds to wait, if it is known.
- Exit: the exit code of the command.

"""

_OTHERS = {
    "INTERRUPTED": ("Ctrl-C or SIGTERM ended the command.", "", "130"),
    "SYSTEM_ERROR": ("The operating system refused to read or write a file.", "", "1"),
    "USAGE": ("A command has an unknown option, or an argument is missing.", "", "2"),
}
"""Codes of the command that are no exceptions of the package: cause, HTTP status, exit code."""

_REMEDIES = {
    "ANSWER_CONTEXT_EXCEEDED": "Lower `ANSWER_CONTEXT_TOKENS` or `ANSWER_MAX_TOKENS`, or give the "
    "model a larger context.",
    "ANSWER_FAILED": "Raise `ANSWER_MAX_TOKENS`, ask in other words, or choose another "
    "`ANSWER_MODEL`. Check the key and `OPENAI_BASE_URL`.",
    "ANSWER_SERVICE_UNAVAILABLE": "Try again later. Check `OPENAI_BASE_URL` and the service.",
    "ANSWER_TIMEOUT": "Raise `ANSWER_TIMEOUT_S`, lower `ANSWER_MAX_TOKENS`, or choose "
    "a faster model.",
    "BASELINE_REFUSED": "Correct the cause that the message names, and evaluate again.",
    "COLLECTION_MISSING": "Run `ingest` with the same `DOCS_DIR`, `DATA_DIR` and `QDRANT_` "
    "settings. Only `ingest --rebuild` keeps an earlier collection for `--roll-back`.",
    "CONFIGURATION_ERROR": "Correct what the message names: [Settings](settings.md).",
    "DEPENDENCY_MISSING": "Run the command in the message: [Install](../install.md).",
    "DOCS_FOLDER_INVALID": "Set `DOCS_DIR` or `--docs-dir` to the folder with the Markdown files.",
    "DOCUMENT_ID_INVALID": "Write the path below the docs folder, such as `module-1/intro.md`.",
    "DOCUMENT_INVALID": "Correct what the message names, and ingest again.",
    "DOCUMENT_UNREADABLE": "Check the permissions and links of the file, and ingest again.",
    "EMBEDDING_FAILED": "The message says which of them. Check the key, `EMBEDDING_MODEL`, "
    "`EMBEDDING_DIM` and the address. For a slow service, raise `EMBEDDING_TIMEOUT_S`.",
    "EMBEDDING_SPACE_MISMATCH": "Run `ingest --rebuild`, or restore the settings that the message "
    "names.",
    "EVALUATION_FILE_INVALID": "Run `evaluate` again, with `--accept` for a baseline, or delete "
    "the file.",
    "FRONT_MATTER_INVALID": "Correct the line that the message names.",
    "INGESTION_RUNNING": "Wait, and ask again. The message says how many documents are done.",
    "INTERRUPTED": "Run the command again. The next `ingest` continues.",
    "INVALID_K": "Pass a number from 1 to 100 as `--top-k` or `top_k`.",
    "INVALID_RESULT": "Run `audit --repair`; if that does not help, `ingest --rebuild`. A reranker "
    "must return one finite score per passage.",
    "LEDGER_CONFLICT": "The next `ingest` compares the document again.",
    "DATABASE_UNAVAILABLE": "Check the database that the message names. Then run `ingest` again.",
    "PLAN_OUTDATED": "Give all workers the same checkout, release and settings. The next plan "
    "includes the documents again.",
    "QDRANT_CONNECTION_ERROR": "Check `QDRANT_URL`, `QDRANT_API_KEY` and the server. After several "
    "failures, calls are tried again after 30 seconds.",
    "QDRANT_TIMEOUT": "Try again later, ask for fewer results, or raise `QDRANT_TIMEOUT_S`; in a "
    "backend `ServiceLimits.query_s`.",
    "QUERY_EMPTY": "Ask a question in words.",
    "QUERY_INVALID": "Correct the field that the message names.",
    "QUERY_TOO_LONG": "Shorten the question. A long text belongs in `selected_text`.",
    "QUESTION_LOG_FAILED": "Check `QUESTION_LOG_URL`, or the free space below `DATA_DIR`. Answers "
    "are still given.",
    "RAG_PIPELINE_ERROR": "Read the message. The package raises only subclasses with other codes.",
    "REBUILD_INCOMPLETE": "Correct the documents that the message names, and run `ingest "
    "--rebuild` again.",
    "SECTION_MISSING": "Use an address from the table of contents or from the source of an answer.",
    "SELECTED_TEXT_MISSING": "Pass the text that the reader selected, or ask in normal mode.",
    "STORE_DAMAGED": "Run `audit --repair`: [Damaged files](../how-to/operate.md#damaged-files).",
    "STORE_FAILED": "The message names the place and the remedy, such as to free disk space.",
    "STORE_LOCKED": "[Wait for the other process](../troubleshooting.md#the-store-is-locked) or "
    "end it, or raise `STORE_LOCK_TIMEOUT_S` or `INGEST_LOCK_TIMEOUT_S`.",
    "STORE_NOT_WRITABLE": "Free space on the server's disk, or lift its lock or limit. Run "
    "`ingest` again: embeddings that were made are kept.",
    "SWEEP_CELL_INCOMPLETE": "Correct the documents that the message names, and sweep again.",
    "SYSTEM_ERROR": "Check the disk space and the permissions of the file that the message names.",
    "TEST_SET_INVALID": "Correct the entries that the message lists. It names the nearest page or "
    "heading.",
    "USAGE": "See `rag-pipeline COMMAND --help` or [Commands](commands.md).",
    "VALIDATION_FAILED": "Run `audit`, then `audit --repair`.",
}
"""What to do about each code. The names of commands stand without `rag-pipeline`."""


def list_errors() -> dict[str, list[type[errors.RagPipelineError]]]:
    """Return the error classes by code, the class that declares the code first."""
    classes = [kind for kind in vars(errors).values() if hasattr(kind, "code")]
    found: dict[str, list[type[errors.RagPipelineError]]] = {}
    for cls in sorted(
        classes, key=lambda kind: (kind.code, "code" not in vars(kind), kind.__name__)
    ):
        found.setdefault(cls.code, []).append(cls)
    return found


def describe_errors() -> str:
    """Return the text of the page.

    Raises:
        LookupError: `_REMEDIES` lacks a code, or has a code that no error has.
    """
    rows = {
        code: (read_summary(classes[0]), _write_status(classes), str(classes[0].exit_code))
        for code, classes in list_errors().items()
    } | _OTHERS
    if differing := sorted(rows.keys() ^ _REMEDIES.keys()):
        message = f"_REMEDIES in scripts/reference/errors.py and the errors differ: {differing}"
        raise LookupError(message)
    head = ("Code", "What is wrong", "What to do", "HTTP", "Exit")
    table = [
        (f"`{code}`", cause, _REMEDIES[code], status, exit_code)
        for code, (cause, status, exit_code) in sorted(rows.items())
    ]
    return f"{NOTE}{_HEAD}{write_table(head, table)}".rstrip() + "\n"


def _write_status(classes: list[type[errors.RagPipelineError]]) -> str:
    """Return the HTTP status of a code, with `*` if one of its classes is transient."""
    mark = "*" if any(cls.transient for cls in classes) else ""
    return f"{classes[0].http_status}{mark}"
