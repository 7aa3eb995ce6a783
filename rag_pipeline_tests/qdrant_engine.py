# ruff: noqa: SLF001  # it is the server of a store, whose private methods are those of the engine
"""A Qdrant server on 127.0.0.1 for tests and benchmarks: the REST interface of the embedded engine.

    python -m rag_pipeline_tests.qdrant_engine [--delay-ms 1]

The answers are those of the engine, so the real client gets real rankings. It has the parts of the
interface that this package uses. As the real server does, it sends an answer that the client
accepts compressed in two packets; see `Reply.in_two_packets`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_pipeline.adapters.stores.edge_store import EdgeStore, create_shard
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.vectors import ChunkVectors, EmbeddingModel, EmbeddingSpace, Point
from rag_pipeline.core.vectors import SparseVector as Terms
from rag_pipeline_tests.loopback import LoopbackServer, Received, Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass
class _Collection:
    store: EdgeStore
    made_with: dict[str, Any]
    indexed: dict[str, str] = field(default_factory=dict)


class QdrantEngine:
    """The collections of a server, and its answers to requests.

    Args:
        folder: Folder for the files of the engine.
        delay_s: Seconds that the server takes for each request, besides those of the engine.

    Attributes:
        refuse: Function that may return another reply to a request; None for the engine's answer.
    """

    def __init__(self, folder: Path, delay_s: float = 0.0) -> None:
        self._folder = folder
        self._delay_s = delay_s
        self._numbers = count()
        self._lock = RLock()
        self._collections: dict[str, _Collection] = {}
        self._aliases: dict[str, str] = {}
        self.refuse: Callable[[Received], Reply | None] = lambda _: None

    def answer(self, request: Received) -> Reply:
        """Return the server's reply to a request."""
        time.sleep(self._delay_s)
        is_split = "gzip" in request.headers.get("accept-encoding", "")
        refused = self.refuse(request)
        if refused is not None:
            return refused
        try:
            with self._lock:
                result = self._act(request)
        except FileNotFoundError as error:
            said = f"Not found: Collection {error} doesn't exist!"
            return Reply(404, {"status": {"error": said}, "time": 0.0})
        return Reply(body={"result": result, "status": "ok", "time": 0.0}, in_two_packets=is_split)

    def close(self) -> None:
        """Close all collections."""
        for name in [*self._collections]:
            self._drop(name)

    def _act(self, request: Received) -> Any:  # noqa: ANN401  # JSON
        first, *rest = request.path.split("?")[0].strip("/").split("/")
        body = request.body or {}
        if not first:
            return {"title": "qdrant - vector search engine", "version": "1.19.0"}
        if first == "aliases":
            pairs = self._aliases.items()
            return {"aliases": [{"alias_name": k, "collection_name": v} for k, v in pairs]}
        if not rest:
            return {"collections": [{"name": name} for name in self._collections]}
        if rest == ["aliases"]:
            return self._change_aliases(body["actions"])
        name, *action = rest
        if action[:1] == ["points"]:
            return self._serve_points(self._find(name), (request.method, *action[1:]), body)
        return self._serve_collection(name, (request.method, *action), body)

    def _serve_collection(self, name: str, action: tuple[str, ...], body: dict[str, Any]) -> Any:  # noqa: ANN401  # JSON
        match action:
            case "GET", "exists":
                return {"exists": name in self._collections}
            case "PUT", "index":
                return self._index(self._find(name), body)
            case ("PUT",):
                return self._create(name, body)
            case ("DELETE",):
                return self._drop(name)
            case ("PATCH",):
                self._find(name).made_with.update(body)
                return True
        return self._describe(self._find(name))

    def _find(self, name: str) -> _Collection:
        found = self._collections.get(self._aliases.get(name, name))
        if found is None:
            raise FileNotFoundError(name)
        return found

    def _change_aliases(self, actions: Sequence[dict[str, Any]]) -> bool:
        for action in actions:
            if "delete_alias" in action:
                del self._aliases[action["delete_alias"]["alias_name"]]
            else:
                made = action["create_alias"]
                self._aliases[made["alias_name"]] = made["collection_name"]
        return True

    def _create(self, name: str, body: dict[str, Any]) -> bool:
        folder = self._folder / f"{next(self._numbers)}"
        dim = next(iter(body["vectors"].values()))["size"] if "dense" in body["vectors"] else 4
        space = EmbeddingSpace(EmbeddingModel("any", "any", dim, 1, 1), 1)
        shard = create_shard(folder / "shard", dim)
        self._collections[name] = _Collection(EdgeStore(shard, space, folder, lambda: None), body)
        return True

    def _drop(self, name: str) -> bool:
        found = self._collections.pop(name, None)
        if found is None:
            return False
        self._aliases = {k: v for k, v in self._aliases.items() if v != name}
        found.store.close()
        shutil.rmtree(found.store._folder, ignore_errors=True)
        return True

    def _describe(self, found: _Collection) -> dict[str, Any]:
        made, points = found.made_with, found.store.count()
        optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000}
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": points,
            "config": {
                "params": {"vectors": made["vectors"]},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                "optimizer_config": optimizer
                | {"default_segment_number": 0, "flush_interval_sec": 5},
                "metadata": made.get("metadata"),
                "strict_mode_config": made.get("strict_mode_config"),
            },
            "payload_schema": {
                name: {"data_type": kind, "points": points} for name, kind in found.indexed.items()
            },
        }

    def _index(self, found: _Collection, body: dict[str, Any]) -> dict[str, Any]:
        name, schema = body["field_name"], body["field_schema"]
        if name not in found.indexed:
            found.store.create_index(name, is_boolean=schema == "bool")
        found.indexed[name] = schema
        return _COMPLETED

    def _serve_points(
        self, found: _Collection, action: tuple[str, ...], body: dict[str, Any]
    ) -> Any:  # noqa: ANN401  # JSON
        store = found.store
        match action:
            case "POST", "query", "batch":
                return self._query(store, body["searches"])
            case "POST", "count":
                return {"count": store.count(_read_filter(body.get("filter")))}
            case ("POST",):
                records = store._retrieve(
                    [PointId(point_id) for point_id in body["ids"]],
                    with_payload=body.get("with_payload") or False,
                    with_vectors=body.get("with_vector") or False,
                )
                return [_write_record(record) for record in records]
            case "POST", "scroll":
                return _scroll(store, body)
            case ("PUT",):
                with store.write_together():
                    store._write([_read_point(point) for point in body["points"]])
            case "POST", "delete":
                with store.write_together():
                    store.delete([PointId(point_id) for point_id in body["points"]])
            case "POST", "batch":
                changes = [entry["overwrite_payload"] for entry in body["operations"]]
                with store.write_together():
                    store._overwrite(
                        {
                            PointId(it): change["payload"]
                            for change in changes
                            for it in change["points"]
                        }
                    )
                return [_COMPLETED] * len(changes)
            case _:
                raise AssertionError(action)
        return _COMPLETED

    def _query(self, store: EdgeStore, searches: Sequence[dict[str, Any]]) -> list[Any]:
        asked = [search for search in searches if "query" in search]
        hits = iter(store._search([(_read_query(search), search["limit"]) for search in asked]))
        answers = []
        for search in searches:
            if "query" in search:
                points = [{"id": key, "version": 1, "score": score} for key, score in next(hits)]
            else:
                found = _scroll(store, search)["points"]
                points = [{**record, "version": 1, "score": 1.0} for record in found]
            answers.append({"points": points})
        return answers


_COMPLETED = {"operation_id": 1, "status": "completed"}


def _scroll(store: EdgeStore, body: dict[str, Any]) -> dict[str, Any]:
    where = _read_filter(body.get("filter"))
    payload, vectors = body.get("with_payload") or False, body.get("with_vector") or False
    limit, offset = body["limit"], body.get("offset")
    records: list[Any] = []
    while len(records) < limit:
        page, offset = store._scroll_page(where, offset, payload, vectors)
        records += page
        if offset is None:
            break
    if len(records) > limit:
        offset = records[limit].id
    return {
        "points": [_write_record(record) for record in records[:limit]],
        "next_page_offset": offset,
    }


def _read_query(search: dict[str, Any]) -> ChannelQuery:
    query = search["query"]
    if isinstance(query, dict) and "nearest" in query:
        query = query["nearest"]
    vector: Any
    if isinstance(query, dict):
        vector = Terms(tuple(query["indices"]), tuple(query["values"]))
    else:
        vector = np.asarray(query, dtype=np.float32)
    idf = (search.get("params") or {}).get("idf") or {}
    corpus = _read_filter(idf.get("corpus"))
    where = _read_filter(search.get("filter"))
    return ChannelQuery(Channel(search["using"]), vector, search["limit"], where, corpus)


def _read_filter(found: dict[str, Any] | None) -> PointFilter:
    if not found:
        return ALL_POINTS
    fields, without = [], []
    point_ids = None
    for condition in found["must"]:
        if "has_id" in condition:
            point_ids = tuple(PointId(point_id) for point_id in condition["has_id"])
        elif "is_empty" in condition:
            without.append(condition["is_empty"]["key"])
        else:
            fields.append((condition["key"], tuple(condition["match"]["any"])))
    return PointFilter(tuple(fields), point_ids, tuple(without))


def _read_point(point: dict[str, Any]) -> Point:
    named = point["vector"]
    dense, windows = (np.asarray(named[name], dtype=np.float32) for name in ("dense", "windows"))
    terms = Terms(tuple(named["bm25"]["indices"]), tuple(named["bm25"]["values"]))
    return Point(PointId(point["id"]), ChunkVectors(dense, windows), terms, point["payload"])


def _write_record(record: Any) -> dict[str, Any]:  # noqa: ANN401  # a class of the engine
    written: dict[str, Any] = {"id": record.id, "payload": record.payload or {}}
    if record.vector:
        written["vector"] = {
            name: {"indices": list(vector.indices), "values": list(vector.values)}
            if hasattr(vector, "indices")
            else vector
            for name, vector in record.vector.items()
        }
    return written


@contextmanager
def serve_qdrant(
    folder: Path, delay_s: float = 0.0
) -> Iterator[tuple[LoopbackServer, QdrantEngine]]:
    """Run a server with an empty engine during a `with` block."""
    engine = QdrantEngine(folder, delay_s)
    with serve(engine.answer) as server:
        try:
            yield server, engine
        finally:
            engine.close()


def main() -> None:
    """Print the address, and serve until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=1.0)
    delay_s = parser.parse_args().delay_ms / 1000
    with tempfile.TemporaryDirectory() as name, serve_qdrant(Path(name), delay_s) as (server, _):
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.readline()


if __name__ == "__main__":
    main()
