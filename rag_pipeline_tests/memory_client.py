"""Qdrant's own client with its engine in memory, which answers searches as a server does."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from qdrant_client import QdrantClient, models

from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection


class MemoryClient(QdrantClient):
    """A client with an engine in memory, which has no payload indexes."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    @property
    def http(self) -> Any:  # noqa: ANN401  # only the part that the store uses
        """The access to the REST interface, which is only there for searches."""
        return SimpleNamespace(client=SimpleNamespace(request=self._search))

    def create_payload_index(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401  # any field
        """Create no index, and do not warn about it."""

    def _search(self, *, path_params: dict[str, str], content: str, **_: object) -> Any:  # noqa: ANN401  # JSON
        requests = [_read_request(one) for one in json.loads(content)["searches"]]
        found = self.query_batch_points(path_params["collection_name"], requests)
        return {"result": [{"points": [_write_hit(hit) for hit in one.points]} for one in found]}


def _write_hit(hit: models.ScoredPoint) -> dict[str, Any]:
    """Return a hit as JSON. The engine's scores of equal vectors can differ in the last bits."""
    return {"id": hit.id, "score": round(hit.score, 6), "payload": hit.payload}


def _read_request(search: dict[str, Any]) -> models.QueryRequest:
    """Return the request of a search. The engine would warn about parameters other than `idf`."""
    idf = search.pop("params", {}).get("idf")
    return models.QueryRequest.model_validate(search | ({"params": {"idf": idf}} if idf else {}))


def connect_memory() -> QdrantConnection:
    """Create a connection to a new engine in memory."""
    return QdrantConnection(MemoryClient(), "memory")
