"""The size of a model's context, asked from the server that runs the model.

OpenAI's API has no field for it. llama.cpp tells it at `/props`, Text Embeddings Inference at
`/info`, Ollama at `/api/show`, and vLLM, LM Studio and OpenRouter in their lists of models.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx2

ASKING_S: Final = 2.0
"""Seconds that a server has to tell the size; a reader is waiting for the answer."""

_LISTED: Final = ("loaded_context_length", "max_model_len", "n_ctx", "context_length")
"""Fields of a model in a list of models, the most exact one first."""

_SET: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)
_LONGEST: Final = 4_000_000  # bytes of a reply; OpenRouter's list of models has about 1 MB


async def ask_context(
    client: httpx2.AsyncClient, base_url: str, model: str, headers: Mapping[str, str]
) -> int | None:
    """Return the tokens of a model's context, or None if the server does not tell.

    No reply and no failure of the server raises an error.

    Args:
        client: Sends the requests.
        base_url: The address of the API, such as `http://127.0.0.1:8080/v1`.
        model: The name of the model.
        headers: The headers of all requests to the API.
    """
    root = base_url.rstrip("/").removesuffix("/v1")
    asked = (
        ("GET", f"{root}/props", None),
        ("POST", f"{root}/api/show", {"model": model}),
        ("GET", f"{root}/api/v0/models", None),
        ("GET", f"{base_url.rstrip('/')}/models", None),
    )
    replies = await asyncio.gather(
        *(_read(client, method, url, headers, body) for method, url, body in asked)
    )
    return next((size for reply in replies for size in find_context(reply, model)), None)


def find_context(reply: Any, model: str) -> Iterator[int]:  # noqa: ANN401  # any JSON
    """Yield the sizes of a model's context in a server's reply, the most exact one first."""
    if not isinstance(reply, dict):
        return
    props, shown = reply.get("default_generation_settings"), reply.get("model_info")
    found = [reply.get("max_input_length")]
    found += [props.get("n_ctx")] if isinstance(props, dict) else []
    if isinstance(shown, dict):
        found += [int(size) for size in _SET.findall(str(reply.get("parameters") or ""))]
        found += [size for name, size in shown.items() if name.endswith(".context_length")]
    data = reply.get("data")
    listed = data if isinstance(data, list) else []
    for entry in listed:
        if isinstance(entry, dict) and (entry.get("id") == model or len(listed) == 1):
            inner = entry.get("meta")
            places = [entry, inner if isinstance(inner, dict) else {}]
            found += [place.get(name) for name in _LISTED for place in places]
    yield from (size for size in found if type(size) is int and size > 0)


async def _read(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: dict[str, str] | None,
) -> Any:  # noqa: ANN401  # any JSON
    """Return the JSON of a reply, or None."""
    try:
        async with (
            asyncio.timeout(ASKING_S),
            client.stream(method, url, json=body, headers=dict(headers)) as response,
        ):
            if not response.is_success:
                return None
            data = b""
            async for part in response.aiter_bytes():
                data += part
                if len(data) > _LONGEST:
                    return None
            return json.loads(data)
    except Exception:  # noqa: BLE001  # the size is only a hint
        return None
