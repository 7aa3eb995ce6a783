"""Processes that create and switch the collections of a book at the same moments.

Nothing but the services of the processes keeps
them apart: each has a STATE_NAME of its own, so their locks of the book do not exclude each other.
"""

from __future__ import annotations

import multiprocessing
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import CollectionMissingError, EarlierCollectionMissingError
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.context import IngestionContext
from rag_pipeline.ingestion.planning import choose_collection
from rag_pipeline_tests.congruence.points import DIM, make_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.synchronize import Barrier

    from rag_pipeline.core.protocols import PointStore

PROCESSES: Final = 4
_LONGEST_S: Final = 300.0
_POINTS: Final = 3
_LOADED: Final = (
    "rag_pipeline.adapters.database.ledger",
    "rag_pipeline.adapters.database.postgres",
    "rag_pipeline.adapters.embedders.openai",
    "rag_pipeline.adapters.stores.edge_catalog",
)
"""The modules that a server of processes imports once, which takes most of their time."""


def create_aligned(settings: Mapping[str, Any], rounds: int) -> list[str]:
    """Let four processes create each of some collections at the same moment, and fill it.

    Args:
        settings: The settings of the book, which name the folders and the database.
        rounds: Number of collections.

    Returns:
        A sentence for each collection that is not the only one or lacks a point.
    """
    return _run_aligned(_create, settings, rounds)


def switch_aligned(settings: Mapping[str, Any], rounds: int) -> list[str]:
    """Let four processes build a collection each, and switch to it at the same moment.

    Two of them also switch back, and all sweep.

    Args:
        settings: The settings of the book, which name the folders and the database.
        rounds: Number of times.

    Returns:
        A sentence for each time after which the current collection is missing or lacks a point.
    """
    return _run_aligned(_switch, settings, rounds)


def _run_aligned(work: Callable[..., None], settings: Mapping[str, Any], rounds: int) -> list[str]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_LOADED])
    barrier, problems = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=work, args=(dict(settings), rounds, number, barrier, problems))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    found: list[str] = []
    for _ in processes:
        found += problems.get(timeout=_LONGEST_S)
    for process in processes:
        process.join(_LONGEST_S)
    return found


def _create(
    settings: dict[str, Any],
    rounds: int,
    number: int,
    barrier: Barrier,
    problems: Any,  # noqa: ANN401  # a queue
) -> None:
    with _report(number, barrier, problems) as found:
        for place in range(rounds):
            context = _open(settings, number, f"round-{place}")
            barrier.wait(_LONGEST_S)
            collection_id = choose_collection(context, rebuild=False)
            with closing(context.services.catalog.open(collection_id, wait_s=60.0)) as store:
                store.upsert([make_point(number + 1)])
            barrier.wait(_LONGEST_S)
            if number == 0:
                with closing(context.services.catalog.open_current(wait_s=60.0)) as store:
                    found.extend(_describe(f"collection {place}", store, PROCESSES))


def _switch(
    settings: dict[str, Any],
    rounds: int,
    number: int,
    barrier: Barrier,
    problems: Any,  # noqa: ANN401  # a queue
) -> None:
    with _report(number, barrier, problems) as found:
        context = _open(settings, number, "switched")
        catalog = context.services.catalog
        for place in range(rounds):
            barrier.wait(_LONGEST_S)
            with closing(catalog.create(context.space)) as store:
                store.upsert([make_point(point + 1) for point in range(_POINTS)])
            barrier.wait(_LONGEST_S)
            with suppress(CollectionMissingError):  # another process has switched before
                catalog.switch_to(store.collection_id)
            if number % 2:
                with suppress(EarlierCollectionMissingError):
                    catalog.roll_back()
            catalog.sweep()
            barrier.wait(_LONGEST_S)
            if number == 0:
                try:
                    with closing(catalog.open_current(wait_s=60.0)) as store:
                        found.extend(_describe(f"round {place}", store, _POINTS))
                except CollectionMissingError as error:
                    found.append(f"round {place}: {error}")


@contextmanager
def _report(
    number: int,
    barrier: Barrier,
    problems: Any,  # noqa: ANN401  # a queue
) -> Iterator[list[str]]:
    """Yield a list of problems, and send it at the end of the block.

    A process that fails reports its error, and does not let the others wait for it.
    """
    found: list[str] = []
    try:
        yield found
    except BaseException as error:
        barrier.abort()
        found.append(f"process {number}: {error!r}")
        raise
    finally:
        problems.put(found)


def _open(settings: dict[str, Any], number: int, collection: str) -> IngestionContext:
    values = settings | {
        "qdrant_collection": collection,
        "state_name": f"{collection}-{number}",
        "embedding_provider": "openai",
        "embedding_dim": DIM,
        "openai_api_key": "none",
    }
    loaded = load_settings(_env_file="", **values)
    return IngestionContext(loaded, connect_services(loaded))


def _describe(place: str, store: PointStore, wanted: int) -> list[str]:
    found = store.count()
    return [] if found == wanted else [f"{place}: {found} of {wanted} points"]
