"""Constants and error translation for OpenAI's API, shared by the embedder and the chat model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import openai

    from rag_pipeline.adapters.http import Service
    from rag_pipeline.core.errors import RagPipelineError

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

TRANSIENT_STATUSES: Final = frozenset({408, 409, 429})
"""HTTP statuses below 500 after which OpenAI's own client retries a request."""


def read_reason(error: openai.APIStatusError) -> str:
    """Return the service's own words about a failed request.

    OpenAI's client has them only if they stand where OpenAI's own service puts them. Otherwise the
    result is the text of the response.
    """
    said = error.message
    if not said.startswith("Error code: ") or len(said) > len("Error code: 000"):
        return said
    return error.response.text.strip() or said


def translate_error(error: openai.APIError, service: Service, timeout_s: float) -> RagPipelineError:
    """Return this package's error for an error that OpenAI's client raised.

    Raise the result with `from None`, because the client's own message may contain parts of the
    key.

    Args:
        error: Error of the client.
        service: The service that was called.
        timeout_s: Time limit of the call in seconds, for the message.
    """
    import openai  # noqa: PLC0415  # already loaded, because it raised the error

    if isinstance(error, openai.APITimeoutError):
        return service.describe_late(timeout_s)
    if isinstance(error, openai.APIStatusError):
        return service.translate_status(
            error.status_code,
            read_reason(error),
            error.response.headers.get("retry-after"),
            has_quota=error.code != "insufficient_quota",
        )
    if isinstance(error, openai.APIConnectionError):
        return service.describe_unreachable(error.__cause__)
    return service.describe_unreadable(error)
