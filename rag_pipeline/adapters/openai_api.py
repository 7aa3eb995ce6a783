"""The API of OpenAI and of servers that speak it, as embeddings and answers use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import openai

    from rag_pipeline.adapters.http import Service
    from rag_pipeline.core.errors import RagPipelineError

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

TRANSIENT_STATUSES: Final = frozenset({408, 409, 429})
"""Statuses below 500 after which OpenAI's own client tries again."""


def translate_error(error: openai.APIError, service: Service, timeout_s: float) -> RagPipelineError:
    """Return our error for one that OpenAI's client raised.

    Raise it `from None`: the client's own text may show parts of the key.
    """
    import openai  # noqa: PLC0415  # loaded already: it raised the error

    if isinstance(error, openai.APITimeoutError):
        return service.describe_late(timeout_s)
    if isinstance(error, openai.APIStatusError):
        return service.translate_status(
            error.status_code,
            error.message,
            error.response.headers.get("retry-after"),
            has_quota=error.code != "insufficient_quota",
        )
    if isinstance(error, openai.APIConnectionError):
        return service.describe_unreachable(error.__cause__)
    return service.describe_unreadable(type(error).__name__)
