"""Tests of the real Qdrant client against a local server that fails in many ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from qdrant_client import models

from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import (
    QdrantConnection,
    connect_server,
)
from rag_pipeline.adapters.stores.qdrant_store import QdrantStore
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    StoreError,
    StoreNotWritableError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import Channel, ChannelQuery
from rag_pipeline_tests.adapters.embedders.test_openai import KEY, check_message
from rag_pipeline_tests.congruence.points import DIM, SPACE, make_point
from rag_pipeline_tests.loopback import (
    MALFORMED,
    RESET,
    LoopbackServer,
    Received,
    Reply,
    serve,
)
from rag_pipeline_tests.memory_client import connect_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_pipeline.core.vectors import Point

OPENED: list[QdrantConnection] = []


def connect(
    server: LoopbackServer | str, waits: list[float] | None = None, timeout_s: float = 5.0
) -> QdrantConnection:
    url = server if isinstance(server, str) else server.url
    sleep = (waits if waits is not None else []).append
    connection = connect_server(url, api_key=KEY, timeout_s=timeout_s, sleep=sleep)
    OPENED.append(connection)
    return connection


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    """Close the connections, whose sockets the errors of a test would keep open."""
    yield
    while OPENED:
        OPENED.pop()._client.close()  # noqa: SLF001  # the program keeps its connection until it ends


def open_store(connection: QdrantConnection) -> QdrantStore:
    return QdrantStore(connection, SPACE, "book-20260101T000000-abcdef")


def search(store: QdrantStore) -> object:
    return store.search_many([ChannelQuery(Channel.DENSE, np.ones(DIM, dtype=np.float32), 5)])


def upsert(store: QdrantStore) -> object:
    return store.upsert([make_point(1)])  # type: ignore[func-returns-value]  # all calls have the same type


CALLS = [
    search,
    upsert,
    lambda store: store.fetch([PointId(1)]),
    lambda store: store.count(),
    lambda store: store.scroll(),
    lambda store: store.delete([PointId(1)]),
    lambda store: store.set_payloads({PointId(1): {"a": 1}}),
]


def answer_count(request: Received) -> Reply:
    assert request.path.endswith("/points/count")
    return Reply(body={"result": {"count": 3}, "status": "ok", "time": 0.0})


@pytest.mark.parametrize("call", CALLS)
def test_every_call_is_tried_three_times_before_it_fails(
    call: Callable[[QdrantStore], object],
) -> None:
    waits: list[float] = []
    with serve([Reply(500, {"status": {"error": f"boom {KEY}"}})]) as server:
        with pytest.raises(StoreUnavailableError, match="HTTP 500") as caught:
            call(open_store(connect(server, waits)))
        assert len(server.received) == 3
        assert server.received[0].headers["api-key"] == KEY
    assert 0.5 <= waits[0] <= 0.75
    assert 1.0 <= waits[1] <= 1.5
    check_message(caught.value)


@pytest.mark.parametrize(("asked", "waited"), [("1", 1.0), ("600", 2.0), ("0", 0.0), ("-5", 0.0)])
def test_retry_after_is_respected_up_to_a_limit(asked: str, waited: float) -> None:
    waits: list[float] = []
    with (
        serve([Reply(429, {}, {"Retry-After": asked})]) as server,
        pytest.raises(StoreUnavailableError),
    ):
        open_store(connect(server, waits)).count()
    assert waits == [waited, waited]


@pytest.mark.parametrize("asked", ["Wed, 21 Oct 2026 07:28:00 GMT", "9" * 400])
def test_an_error_with_an_unreadable_retry_after_is_still_transient(asked: str) -> None:
    limited = Reply(429, {}, {"Retry-After": asked})
    with serve([limited]) as server, pytest.raises(StoreUnavailableError) as caught:
        open_store(connect(server)).count()
    check_message(caught.value)


def test_a_reused_connection_has_the_same_time_limit() -> None:
    replies = iter([answer_count, answer_count])

    def answer(request: Received) -> Reply:
        reply = next(replies, None)
        return reply(request) if reply else Reply(fault="drip")

    with serve(answer) as server:
        store = open_store(connect(server, timeout_s=0.3))
        assert (store.count(), store.count()) == (3, 3)
        with pytest.raises(StoreTimeoutError):
            store.count()
        assert server.received[2].client_port == server.received[0].client_port


def test_an_unknown_collection_is_missing() -> None:
    unknown = Reply(404, {"status": {"error": "Not found: Collection doesn't exist!"}})
    with serve([unknown]) as server:
        with pytest.raises(CollectionMissingError, match="ingest"):
            open_store(connect(server)).count()
        assert len(server.received) == 1


@pytest.mark.parametrize(
    "reply",
    [
        MALFORMED,
        Reply(body=b"<html>a login page</html>", headers={"Content-Type": "text/html"}),
        Reply(body={"result": {"no": "count"}}),
        Reply(body={"result": None}),
        Reply(body={"result": []}),
        Reply(body={"result": [{"points": [{"id": 1}]}]}),
        Reply(body=b"[" * 100_000),
        Reply(body=[1, 2]),
        Reply(body=b""),
        Reply(302, b"", {"Location": "/login"}),
        Reply(400, {"status": {"error": "bad vector"}}),
    ],
    ids=[
        "cut off",
        "HTML",
        "no count",
        "null",
        "too few",
        "no score",
        "deep",
        "other JSON",
        "empty",
        "redirect",
        "400",
    ],
)
@pytest.mark.parametrize("call", [CALLS[3], search], ids=["count", "search"])
def test_a_call_with_an_unusable_response_is_not_retried(
    reply: Reply, call: Callable[[QdrantStore], object]
) -> None:
    with serve([reply]) as server:
        with pytest.raises(StoreError) as caught:
            call(open_store(connect(server)))
        assert len(server.received) == 1
    assert not caught.value.transient
    check_message(caught.value)


def test_the_catalog_reports_a_server_that_is_not_qdrant() -> None:
    with serve([Reply(404, b"not here")]) as server:
        catalog = QdrantCatalog(connect(server), "book")
        with pytest.raises(StoreError, match="QDRANT_URL"):
            catalog.current_id()
        with pytest.raises(StoreError, match="QDRANT_URL"):
            catalog.create(SPACE)


@pytest.mark.parametrize("url", ["ftp://host:6333", "http://host:notaport"])
def test_the_error_for_an_invalid_url_names_the_setting(url: str) -> None:
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        connect_server(url, api_key="", timeout_s=1)


def test_connections_are_reused_between_calls() -> None:
    with serve(answer_count) as server:
        store = open_store(connect(server))
        for _ in range(5):
            store.count()
        ports = {request.client_port for request in server.received}
    assert len(ports) == 1


FULL = (
    "Service internal error: 1 of 1 write operations failed with error: No space left on device",
    "Forbidden: Write operations are forbidden",
    "Service runtime error: Read-only file system (os error 30)",
    "Write quota of the cluster is used up",
)


@pytest.mark.parametrize("said", FULL)
@pytest.mark.parametrize("status", [500, 507, 403])
def test_a_server_that_accepts_no_changes_is_asked_once(status: int, said: str) -> None:
    with serve([Reply(status, {"status": {"error": said}})]) as server:
        with pytest.raises(StoreNotWritableError, match="rag-pipeline ingest") as caught:
            upsert(open_store(connect(server)))
        assert len(server.received) == 1
    assert not caught.value.transient
    check_message(caught.value)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "JSON payload (40 bytes) is larger than allowed (limit: 33 bytes)."),
        (413, "Payload Too Large"),
        (403, 'Forbidden: Limit exceeded 10 > 3 for "upsert limit"'),
    ],
)
def test_points_are_sent_in_smaller_requests_if_the_server_asks_for_it(
    status: int, said: str
) -> None:
    stored: list[int] = []

    def answer(request: Received) -> Reply:
        ids = [point["id"] for point in request.body["points"]]
        if len(ids) > 3:
            return Reply(status, {"status": {"error": said}})
        stored.extend(ids)
        return Reply(body={"result": {"operation_id": 1, "status": "completed"}})

    with serve(answer) as server:
        open_store(connect(server)).upsert([make_point(number) for number in range(10)])
    assert stored == list(range(10))


def test_payloads_are_changed_in_smaller_requests_if_the_server_asks_for_it() -> None:
    changed: list[int] = []

    def answer(request: Received) -> Reply:
        operations = request.body["operations"]
        if len(operations) > 3:
            return Reply(413, b"Payload Too Large")
        changed.extend(it["overwrite_payload"]["points"][0] for it in operations)
        result = [{"operation_id": 1, "status": "completed"}] * len(operations)
        return Reply(body={"result": result})

    with serve(answer) as server:
        payloads = {PointId(number): make_point(number).payload for number in range(10)}
        open_store(connect(server)).set_payloads(payloads)
    assert changed == list(range(10))


@pytest.mark.parametrize(
    "write",
    [
        lambda store, points: store.upsert(points),
        lambda store, points: store.set_payloads({it.point_id: it.payload for it in points}),
    ],
    ids=["points", "payloads"],
)
def test_a_request_with_long_texts_has_at_most_eight_megabytes(
    write: Callable[[QdrantStore, list[Point]], object],
) -> None:
    done = {"operation_id": 1, "status": "completed"}

    def answer(request: Received) -> Reply:
        operations = (request.body or {}).get("operations")
        return Reply(body={"result": [done] * len(operations) if operations else done})

    with serve(answer) as server:
        write(
            open_store(connect(server)),
            [make_point(number, text="ü" * 1_500_000) for number in range(1, 6)],
        )
        sizes = [request.size_bytes for request in server.received]
    assert len(sizes) == 3
    assert max(sizes) < 8_500_000


def test_the_error_for_a_point_that_is_too_large_names_the_limit_of_the_server() -> None:
    said = {"status": {"error": "Payload is larger than allowed"}}
    with serve([Reply(413, said)]) as server:
        with pytest.raises(StoreError, match="max_request_size_mb"):
            upsert(open_store(connect(server)))
        assert len(server.received) == 1


def test_answers_are_not_compressed() -> None:
    with serve(answer_count) as server:
        open_store(connect(server)).count()
        assert server.received[0].headers["accept-encoding"] == "identity"


def test_a_restart_of_a_server_that_has_answered_loses_no_call() -> None:
    replies = iter([None, *[RESET] * 8])

    def answer(request: Received) -> Reply:
        return next(replies, None) or answer_count(request)

    with serve(answer) as server:
        store = open_store(connect(server))
        assert (store.count(), store.count()) == (3, 3)
        assert len(server.received) == 10


def describe_collection(created: dict[str, object]) -> dict[str, object]:
    """Build the information that a server returns about a collection."""
    optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "config": {
            "params": {"vectors": created.get("vectors", {})},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                **optimizer,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "metadata": created.get("metadata"),
        },
        "payload_schema": {},
    }


@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ({"search_allow_exact": False}, "search_allow_exact"),
        ({"max_query_limit": 10}, "max_query_limit"),
    ],
)
def test_a_strict_mode_that_forbids_necessary_requests_is_named_when_a_build_is_opened(
    limit: dict[str, object], named: str
) -> None:
    found = describe_collection({"vectors": {}})
    found["config"]["strict_mode_config"] = {"enabled": True, **limit}  # type: ignore[index]  # JSON

    def answer(request: Received) -> Reply:
        aliases = [{"alias_name": "book", "collection_name": "book-20260101T000000-abcdef"}]
        result = {"aliases": aliases} if request.path == "/aliases" else found
        return Reply(body={"result": result, "status": "ok", "time": 0.0})

    with serve(answer) as server, pytest.raises(ConfigurationError, match=named):
        QdrantCatalog(connect(server), "book").open_current(SPACE)


def make_foreign_collection(connection: QdrantConnection, name: str) -> None:
    params = models.VectorParams(size=4, distance=models.Distance.DOT)
    connection.call(lambda client: client.create_collection(name, vectors_config=params))


def test_a_collection_of_another_program_with_the_same_name_is_an_error() -> None:
    connection = connect_memory()
    make_foreign_collection(connection, "book")
    catalog = QdrantCatalog(connection, "book")
    assert catalog.current_id() is None
    for action in (lambda: catalog.open_current(SPACE), lambda: catalog.create(SPACE)):
        with pytest.raises(ConfigurationError, match="QDRANT_COLLECTION"):
            action()
    assert connection.call(lambda client: client.collection_exists("book"))


def test_an_alias_of_another_program_with_the_same_name_is_an_error() -> None:
    connection = connect_memory()
    make_foreign_collection(connection, "theirs")
    alias = models.CreateAlias(collection_name="theirs", alias_name="book")
    operation = models.CreateAliasOperation(create_alias=alias)
    connection.call(lambda client: client.update_collection_aliases([operation]))
    catalog = QdrantCatalog(connection, "book")
    for action in (lambda: catalog.open_current(SPACE), lambda: catalog.create(SPACE)):
        with pytest.raises(ConfigurationError, match="QDRANT_COLLECTION"):
            action()


def test_a_switch_deletes_no_collection_of_other_programs() -> None:
    connection = connect_memory()
    for name in ("book-theirs", "book-2-20260101T000000-abcdef", "another"):
        make_foreign_collection(connection, name)
    catalog = QdrantCatalog(connection, "book")
    for _ in range(3):
        catalog.switch_to(catalog.create(SPACE).collection_id)
    answer = connection.call(lambda client: client.get_collections())
    names = {collection.name for collection in answer.collections}
    assert {"book-theirs", "book-2-20260101T000000-abcdef", "another"} < names
    assert len(names) == 5


def write_by_hand(
    connection: QdrantConnection, store: QdrantStore, point_id: int | str, channel: Channel
) -> None:
    vector = make_point(1).vectors.dense.tolist()
    point = models.PointStruct(
        id=point_id,
        vector={channel.value: [vector] if channel is Channel.WINDOWS else vector},
        payload={"note": "by hand"},
    )
    connection.call(lambda client: client.upsert(store.collection_id, [point]))


def test_the_error_for_a_point_of_another_program_names_point_and_remedy() -> None:
    connection = connect_memory()
    store = QdrantCatalog(connection, "book").create(SPACE)
    foreign = "b6f7a3a2-0000-4000-8000-000000000000"
    write_by_hand(connection, store, foreign, Channel.DENSE)
    for call in (search, lambda store: store.scroll()):
        with pytest.raises(StoreError, match=f"{foreign}.*Delete the point") as caught:
            call(store)
        check_message(caught.value)


def test_a_point_without_a_dense_vector_is_read_without_it() -> None:
    connection = connect_memory()
    store = QdrantCatalog(connection, "book").create(SPACE)
    store.upsert([make_point(1)])
    write_by_hand(connection, store, 2, Channel.WINDOWS)
    found = store.fetch_with_dense([PointId(1), PointId(2)])
    assert [vector is None for _, vector in (found[PointId(1)], found[PointId(2)])] == [False, True]


def test_the_embedding_space_is_not_stored_as_a_point() -> None:
    store = QdrantCatalog(connect_memory(), "book").create(SPACE)
    assert store.count() == 0
    assert store.scroll() == []
