"""The negotiation of content types, and JSON as the service sends and documents it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastapi.responses import JSONResponse, Response

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_CLIENT_CLOSED_REQUEST: Final = 499


class AsciiJsonResponse(JSONResponse):
    """A JSON response in ASCII, so that it can carry any text, also unpaired surrogates."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401  # any JSON, as the base class has it
        """Return the encoded content."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def answer_disconnected() -> Response:
    """Return the response to a request whose client has disconnected.

    The client never sees it. Its status 499, which is nginx's, keeps the request from being counted
    as a success.
    """
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


def prefers(accept: str, wanted: str, default: str) -> bool:
    """Return True if a client asks for a media type by name, and rather than for the default.

    Args:
        accept: The `Accept` header; may be empty.
        wanted: The media type, such as `text/event-stream`. Wildcards do not ask for it.
        default: The media type that is sent otherwise.
    """
    quality: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weights = [_read_weight(text) for text in parameters if text.startswith("q=")]
        quality[media] = weights[0] if weights else 1.0
    asked = quality.get(wanted, 0.0)
    return asked > 0 and asked >= quality.get(default, 0.0)


def make_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON schema of a type, with its definitions in place of references to them."""
    schema = adapter.json_schema(mode="serialization")
    definitions = schema.pop("$defs", {})

    def replace(node: Any) -> Any:  # noqa: ANN401  # any part of a JSON document
        if isinstance(node, dict):
            if "$ref" in node:
                return replace(definitions[node["$ref"].rpartition("/")[2]])
            return {name: replace(value) for name, value in node.items()}
        return [replace(value) for value in node] if isinstance(node, list) else node

    replaced: dict[str, Any] = replace(schema)
    return replaced


def _read_weight(parameter: str) -> float:
    try:
        weight = float(parameter.removeprefix("q="))
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
