"""The messages of errors as clients may see them: without paths of the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag_pipeline.core.errors import RagPipelineError

_PATH: Final = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:\\|/)[^\s'\",;:)]+")


def describe_publicly(error: RagPipelineError) -> str:
    """Return the error's public message, or else its message without absolute paths.

    Errors of the caller, with a status below 500, keep addresses that the caller has sent.
    """
    message = str(getattr(error, "public_message", error))
    return message if error.http_status < 500 else _PATH.sub("(a path)", message)
