"""The parts in which several processes create or switch a collection at the same moment."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING

from rag_pipeline_tests.adapters.stores.aligned import (
    PROCESSES,
    create_aligned,
    switch_aligned,
)
from several_workers.book import (
    WORKERS,
    digest_index,
    make_environment,
    open_context,
    run,
    write_page,
)

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from several_workers.book import Bench


def create_collections(bench: Bench) -> None:
    """Let three processes create the same collection at the same moment, many times."""
    count, docs = bench.sizes.creations, {"DOCS_DIR": str(bench.root / "few")}
    environments = [
        make_environment(bench.root, f"creation-{number}", bench.fast.url) | docs
        for number in range(count)
    ]
    for number in range(9):
        write_page(bench.root / "few", number)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(WORKERS)
    processes = [
        spawn.Process(target=_create_together, args=(environments, number, barrier))
        for number in range(WORKERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(1800)
    clean = make_environment(bench.root, "few-clean", bench.fast.url) | docs
    run(clean, "ingest")
    wanted = digest_index(clean)
    same = sum(digest_index(environment) == wanted for environment in environments)
    print(f"\n{count} collections, each created by {WORKERS} processes at the same moment")
    bench.check("no document failed", all(process.exitcode == 0 for process in processes))
    bench.check(f"{same} have one current collection with all points", same == count)


def switch_collections(bench: Bench) -> None:
    """Let four processes create and switch collections without a common lock of the book."""
    settings = {
        "docs_dir": bench.root / "docs",
        "data_dir": bench.root / "switches",
        "ledger_url": os.environ["LEDGER_URL"],
        "qdrant_url": os.environ.get("QDRANT_URL", ""),
    }
    print(f"\n{PROCESSES} processes, each with a STATE_NAME of its own")
    for name, act, rounds in (
        ("first creations left one collection", create_aligned, bench.sizes.creations),
        ("switches left one current collection", switch_aligned, bench.sizes.switches),
    ):
        problems = act(settings, rounds)
        for problem in problems:
            print(f"  {problem}")
        bench.check(f"{rounds} aligned {name} with all points", not problems)


def _create_together(environments: list[dict[str, str]], number: int, barrier: Barrier) -> None:
    """Create the collection of each book at the same moment as others, and index a third of it."""
    from rag_pipeline.core.models import DocFailure  # noqa: PLC0415  # a child process
    from rag_pipeline.ingestion.parallel.planning import (  # noqa: PLC0415  # the same
        plan_buckets,
        scan_collection,
    )
    from rag_pipeline.ingestion.parallel.working import index_buckets  # noqa: PLC0415  # the same

    for environment in environments:
        context = open_context(environment)
        barrier.wait(120)
        scan = scan_collection(context)
        for work in plan_buckets(context, scan):
            if work.buckets[0] % WORKERS == number:
                for event in index_buckets(context, work, f"process-{number}"):
                    if isinstance(event, DocFailure):
                        raise SystemExit(f"{event.doc_path}: {event.message}")
