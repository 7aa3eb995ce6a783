"""Tests of the exact requests with which a build is created, loaded and finished on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rag_pipeline.adapters.stores.qdrant_catalog import Layout, QdrantCatalog, read_layout
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.adapters.stores.qdrant_store import QdrantStore
from rag_pipeline.core.errors import StoreError, StoreUnavailableError
from rag_pipeline.core.protocols import Channel, ChannelQuery
from rag_pipeline.core.settings import load_settings
from rag_pipeline_tests.adapters.stores.test_qdrant_faults import describe_collection
from rag_pipeline_tests.congruence.points import DIM, SPACE, make_point
from rag_pipeline_tests.loopback import LoopbackServer, Received, Reply, serve

if TYPE_CHECKING:
    from pathlib import Path

BUILD = "book-20260101T000000-abcdef"
MOVING = Reply(500, {"status": {"error": "Service internal error: shard 3 is not active"}})


class Server:
    """A server that stores the configuration of one collection, as Qdrant does."""

    def __init__(self, point_count: int = 0, *, stores_metadata: bool = True) -> None:
        self.created: dict[str, Any] = {}
        self.deleted: list[str] = []
        self.indexed: set[str] = set()
        self.point_count = point_count
        self.stores_metadata = stores_metadata

    def answer(self, request: Received) -> Reply:
        lists = {"/aliases": {"aliases": []}, "/collections": {"collections": [{"name": BUILD}]}}
        result: object = True
        if request.path in lists:
            result = lists[request.path]
        elif request.path.endswith("/exists"):
            result = {"exists": False}
        elif "/index" in request.path:
            self.indexed.add(request.body["field_name"])
            result = {"operation_id": 1, "status": "completed"}
        elif request.method == "DELETE":
            self.deleted.append(request.path)
        elif request.method == "PATCH":
            for name, change in request.body["vectors"].items():
                self.created["vectors"][name].update(change)
        elif request.method == "PUT":
            self.created.update(request.body)
            if not self.stores_metadata:
                del self.created["metadata"]
        elif request.method == "GET":
            result = describe_collection(self.created)
            result["points_count"] = self.point_count
        return Reply(body={"result": result, "status": "ok", "time": 0.0})


def make_catalog(server: LoopbackServer, layout: Layout) -> QdrantCatalog:
    connection = connect_server(server.url, api_key="", timeout_s=5.0, sleep=lambda _: None)
    return QdrantCatalog(connection, "book", layout=layout)


def find_changes(server: LoopbackServer) -> list[object]:
    return [request.body for request in server.received if request.method == "PATCH"]


def test_a_build_is_created_with_its_space_and_indexes() -> None:
    state = Server()
    with serve(state.answer) as server:
        assert make_catalog(server, Layout()).create(SPACE).space == SPACE
    assert state.indexed == {"chapter", "content_type", "doc_path", "module", "tags"}
    assert set(state.created["vectors"]) == {"dense", "windows"}
    assert state.created["sparse_vectors"] == {"bm25": {"modifier": "idf"}}


def test_a_server_that_does_not_store_metadata_is_too_old() -> None:
    state = Server(stores_metadata=False)
    with serve(state.answer) as server, pytest.raises(StoreError, match=r"1\.16"):
        make_catalog(server, Layout()).create(SPACE)
    assert len(state.deleted) == 1


def test_settings_choose_shards_replicas_and_quantized_vectors(tmp_path: Path) -> None:
    settings = load_settings(
        _env_file="",
        data_dir=tmp_path,
        qdrant_shard_number=6,
        qdrant_replication_factor=2,
        qdrant_quantization="all",
    )
    state = Server()
    with serve(state.answer) as server:
        make_catalog(server, read_layout(settings)).create(SPACE)
    assert (state.created["shard_number"], state.created["replication_factor"]) == (6, 2)
    scalar = {"type": "int8", "quantile": 0.99, "always_ram": True}
    for name in ("dense", "windows"):
        assert state.created["vectors"][name]["quantization_config"] == {"scalar": scalar}
    assert state.created["vectors"]["windows"]["on_disk"] is True


@pytest.mark.parametrize(("choice", "quantized"), [("dense", {"dense"}), ("windows", {"windows"})])
def test_only_the_chosen_vectors_are_quantized(
    choice: str, quantized: set[str], tmp_path: Path
) -> None:
    settings = load_settings(_env_file="", data_dir=tmp_path, qdrant_quantization=choice)
    state = Server()
    with serve(state.answer) as server:
        make_catalog(server, read_layout(settings)).create(SPACE)
    vectors = state.created["vectors"]
    assert {name for name in vectors if "quantization_config" in vectors[name]} == quantized


def test_without_settings_the_server_decides(tmp_path: Path) -> None:
    settings = load_settings(_env_file="", data_dir=tmp_path)
    state = Server()
    with serve(state.answer) as server:
        catalog = make_catalog(server, read_layout(settings))
        catalog.create(SPACE)
        catalog.end_loading(BUILD)
        assert find_changes(server) == []
    assert set(state.created) == {"vectors", "sparse_vectors", "metadata"}
    assert set(state.created["vectors"]["dense"]) == {"size", "distance"}


def test_a_build_that_is_loaded_in_bulk_gets_its_graph_once_it_has_all_points() -> None:
    state = Server()
    with serve(state.answer) as server:
        catalog = make_catalog(server, Layout(is_bulk=True))
        catalog.create(SPACE)
        assert state.created["vectors"]["dense"]["hnsw_config"] == {"m": 0}
        catalog.switch_to(BUILD)  # the first build is switched to before it has points
        assert find_changes(server) == []
        state.point_count = 9
        catalog.end_loading(BUILD)
        catalog.end_loading(BUILD)
        assert find_changes(server) == [{"vectors": {"dense": {"hnsw_config": {"m": 16}}}}]
    assert state.created["vectors"]["windows"]["hnsw_config"] == {"m": 0}


def test_a_rebuild_that_was_loaded_in_bulk_has_its_graph_before_it_is_used() -> None:
    state = Server(point_count=9)
    with serve(state.answer) as server:
        catalog = make_catalog(server, Layout(is_bulk=True))
        catalog.create(SPACE)
        make_catalog(server, Layout()).switch_to(BUILD)  # another process, with other settings
        methods = [(request.method, request.path) for request in server.received]
    changed = methods.index(("PATCH", f"/collections/{BUILD}"))
    assert changed < methods.index(("POST", "/collections/aliases"))


def test_quantized_vectors_choose_candidates_and_scores_of_windows_stay_approximate() -> None:
    found = {"result": [{"points": []}, {"points": []}], "status": "ok", "time": 0.0}
    with serve([Reply(body=found)]) as server:
        connection = connect_server(server.url, api_key="", timeout_s=5.0)
        rows = np.ones((2, DIM), dtype=np.float32)
        QdrantStore(connection, SPACE, BUILD).search_many(
            [ChannelQuery(Channel.DENSE, rows[0], 5), ChannelQuery(Channel.WINDOWS, rows, 5)]
        )
        searches = server.received[0].body["searches"]
    rescored = [search["params"]["quantization"]["rescore"] for search in searches]
    assert rescored == [True, False]


def test_a_write_waits_while_a_shard_moves_and_a_read_fails_after_three_attempts() -> None:
    waits: list[float] = []
    done = Reply(body={"result": {"operation_id": 1, "status": "completed"}, "status": "ok"})
    replies = iter([MOVING] * 10)
    with serve(lambda _: next(replies, done)) as server:
        connection = connect_server(server.url, api_key="", timeout_s=5.0, sleep=waits.append)
        QdrantStore(connection, SPACE, BUILD).upsert([make_point(1)])
        assert len(server.received) == 11
    assert sum(waits) > 15
    with serve([MOVING]) as server:
        connection = connect_server(server.url, api_key="", timeout_s=5.0, sleep=waits.append)
        store = QdrantStore(connection, SPACE, BUILD)
        with pytest.raises(StoreUnavailableError, match="shard 3"):
            store.count()
        assert len(server.received) == 3
        with pytest.raises(StoreUnavailableError, match="shard 3"):
            store.upsert([make_point(1)])
