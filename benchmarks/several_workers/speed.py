"""The parts that measure: three workers compared with one, and large books."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any, Final

from bench_ingest import watch_memory
from upkeep_memory import measure_commands

from rag_pipeline_tests.loopback import serve
from several_workers.book import (
    WORKERS,
    count_events,
    is_same_index,
    make_environment,
    make_service,
    open_context,
    run,
    write_page,
)

if TYPE_CHECKING:
    from several_workers.book import Bench

_MEASURED: Final = (
    *("ingest", "open store", "scan", "edit one page", "worker", "audit", "prune", "sweep"),
)


def compare_speed(bench: Bench) -> None:
    """Index a book with one process and with three workers, and print times and events."""
    from rag_pipeline.core.buckets import find_buckets  # noqa: PLC0415  # after the settings are set
    from rag_pipeline.core.models import Stage  # noqa: PLC0415  # the same

    sizes = bench.sizes
    print(f"\n{sizes.docs} documents, an embedding service that waits for each text")
    print("s per text   workers   seconds   documents/s   times as fast")
    environments = []
    for place, wait_s in enumerate(sizes.speed_waits_s):
        alone_s = 0.0
        with serve(make_service(wait_s)) as service:
            for count in (1, WORKERS):
                environment = make_environment(bench.root, f"speed-{place}-{count}", service.url)
                begun = time.monotonic()
                report = run(environment, "ingest", "--workers", str(count))
                seconds = time.monotonic() - begun
                alone_s = alone_s or seconds
                rate = report["docs_processed"] / seconds
                print(
                    f"{wait_s:10} {count:9} {seconds:9.1f} {rate:13.1f} {alone_s / seconds:15.2f}"
                )
                environments.append(environment)
    if sizes.docs < 100:
        print("so few documents take less time than the start of the worker processes")
    bench.check("the index is the same", is_same_index(environments))
    docs = bench.root / "docs"
    buckets = find_buckets(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    events = count_events(environments[-1])
    stored = events["ASSET_MATERIALIZATION"]
    print(f"{events.total()} events in Dagster's log, {stored} of them for {len(buckets)} buckets")
    bench.check("there is one event per bucket and stage", stored == len(buckets) * len(Stage))


def scan_large_books(bench: Bench) -> None:
    """Scan large books whose ledger says that nothing changed, and print time and memory."""
    from rag_pipeline.ingestion.planning import choose_collection, scan_docs  # noqa: PLC0415  # slow
    from rag_pipeline.ingestion.stages import IngestionRun  # noqa: PLC0415  # the same

    print("\nA scan without changes")
    print("documents   seconds   CPU s   peak MB")
    for count in bench.sizes.scans:
        docs = bench.root / f"large-{count}"
        for number in range(count):
            write_page(docs, number)
        environment = make_environment(bench.root, f"scan-{count}", bench.fast.url)
        environment |= {"DOCS_DIR": str(docs)}
        context = open_context(environment)
        choose_collection(context, rebuild=False)
        scan = scan_docs(context)
        ledger = context.services.open_ledger(scan.collection_id)
        artifacts = context.services.open_artifacts(scan.collection_id)
        made = IngestionRun(context, None, "synthetic", scan, ledger, artifacts)  # type: ignore[arg-type]  # no request is needed
        for doc in scan.discovery.docs:
            ledger.record(made.make_entry(doc, data_version="v", chunk_count=2, version=0))
        spawn = multiprocessing.get_context("spawn")
        results = spawn.SimpleQueue()
        process = spawn.Process(target=_scan_unchanged, args=(environment, results))
        process.start()
        process.join(600)
        seconds, cpu_s, peak_mb, is_empty = results.get()
        print(f"{count:9} {seconds:9.2f} {cpu_s:7.2f} {peak_mb:9.0f}")
        bench.check("nothing is to be done", is_empty)


def compare_memory(bench: Bench) -> None:
    """Compare the memory of commands at two sizes of a book."""
    print("\nMemory of commands, each in a process of its own")
    is_short = bench.sizes.memory[0] < 1_000
    names = ("ingest", "worker") if is_short else _MEASURED
    factors = measure_commands(bench.root / "memory", bench.sizes.memory, names)
    bench.check("a worker needs at most 1.2 times the memory", factors["worker"] <= 1.2)


def _scan_unchanged(environment: dict[str, str], results: Any) -> None:  # noqa: ANN401  # a queue
    """Scan a book without changes in a process of its own, and return seconds and peak memory."""
    from rag_pipeline.ingestion.planning import scan_docs  # noqa: PLC0415  # a child process

    context = open_context(environment)
    with watch_memory() as peaks:
        begun, used_s = time.monotonic(), time.process_time()
        scan = scan_docs(context)
        seconds, used_s = time.monotonic() - begun, time.process_time() - used_s
    results.put((seconds, used_s, peaks["VmHWM"], scan.plan.is_empty))
