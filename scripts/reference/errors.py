"""docs/reference/errors.md, from the error classes."""

from __future__ import annotations

from rag_pipeline.core import errors
from reference.docstrings import NOTE, read_text, write_table

_HEAD = """\
# Errors

Every error that the package raises on purpose is a subclass of `RagPipelineError`. Its message says
what is wrong and what to do. [Troubleshooting](../troubleshooting.md) has the remedies.

- Code: a stable name, in `error.code` and in the JSON of a failed command. Classes can share one.
- HTTP status: `error.http_status`, for a web backend that answers a request.
- Exit code: the exit code of the command.
- Transient: if true, the same call may succeed later (`error.transient`). `error.retry_after_s` is
  the number of seconds that the service asked to wait, or `None`.

The command has three more codes, which are no exceptions of the package: `USAGE` (a wrong option
or a missing argument, exit code 2), `SYSTEM_ERROR` (a file cannot be read or written, exit code 1)
and `INTERRUPTED` (Ctrl-C or SIGTERM, exit code 130).

"""


def list_errors() -> dict[str, list[type[errors.RagPipelineError]]]:
    """Return the error classes by code, in alphabetical order."""
    classes = [getattr(errors, name) for name in errors.__all__]
    found: dict[str, list[type[errors.RagPipelineError]]] = {}
    for cls in sorted(classes, key=lambda entry: (entry.code, entry.__name__)):
        found.setdefault(cls.code, []).append(cls)
    return found


def describe_errors() -> str:
    """Return the text of the page."""
    parts = [NOTE, _HEAD]
    for code, classes in list_errors().items():
        parts.append(f"## {code}\n\n")
        rows = [
            (
                f"`{cls.__name__}`",
                str(cls.http_status),
                str(cls.exit_code),
                "yes" if cls.transient else "no",
                " ".join(read_text(cls).split()),
            )
            for cls in classes
        ]
        head = ("Class", "HTTP status", "Exit code", "Transient", "Cause")
        parts.append(write_table(head, rows))
    return "".join(parts).rstrip() + "\n"
