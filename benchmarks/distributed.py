"""Measure and break an ingestion by several worker processes, and print a table for each part.

    python benchmarks/distributed.py [--short] [--seed 1] [--only speed]

The parts are: three workers compared with one, workers that are killed and stopped at random
points, processes that create the collection at the same moment, processes that create and switch
collections without a common lock of the book, and the scan of a large book without changes. The
script exits with code 1 if a result is wrong. It ends all its processes.

The embedding service is a server on 127.0.0.1 that waits for each text. All workers are processes
of this machine with one DATA_DIR. The ledger and the locks are in a Postgres server that the
script starts, or in files if Postgres is not installed or `--files` is given. The store is the
embedded one, which admits one process at a time; with QDRANT_URL it is that server.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline_tests.adapters.question_log.databases import run_postgres
from rag_pipeline_tests.adapters.stores.aligned import (
    PROCESSES,
    create_aligned,
    switch_aligned,
)
from rag_pipeline_tests.hashing_embedder import DIM, HashingEmbedder
from rag_pipeline_tests.loopback import Received, Reply, serve
from rag_pipeline_tests.worker_processes import list_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.synchronize import Barrier

    from rag_pipeline.ingestion.context import IngestionContext

_WORKERS: Final = 3
_WORDS: Final = (
    "robot",
    "joint",
    "torque",
    "sensor",
    "frame",
    "gait",
    "planner",
    "noise",
    "latency",
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each part of the benchmark does."""

    docs: int
    wait_s: float
    kills: int
    creations: int
    switches: int
    scans: tuple[int, ...]


_FULL: Final = Sizes(
    docs=300, wait_s=0.4, kills=20, creations=50, switches=20, scans=(10_000, 100_000)
)
_SHORT: Final = Sizes(docs=30, wait_s=0.2, kills=2, creations=3, switches=3, scans=(1_000,))


def write_page(docs: Path, number: int, edition: int = 0) -> None:
    """Write one page with two sections, whose texts differ for each number and edition."""
    seeded = random.Random(f"{number} {edition}")  # noqa: S311  # not used for secrets
    path = docs / f"part-{number % 100}" / f"page-{number}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (" ".join(seeded.choices(_WORDS, k=40)) for _ in range(2))
    sections = "\n\n".join(f"## Section {place}\n\n{text}." for place, text in enumerate(texts))
    path.write_text(f"---\ntitle: Page {number}\n---\n\n{sections}\n", encoding="utf-8")


def make_service(wait_s: float) -> Any:  # noqa: ANN401  # a function of a request
    """Return the plan of an embedding service that waits a time for each text."""

    def embed(request: Received) -> Reply:
        texts = request.body["input"]
        time.sleep(wait_s * len(texts))
        rows, _ = HashingEmbedder(100_000).embed_passages(texts)
        data = [
            {"object": "embedding", "index": place, "embedding": row.tolist()}
            for place, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return Reply(body={"object": "list", "data": data, "model": "m", "usage": usage})

    return embed


def make_environment(root: Path, data: str, url: str) -> dict[str, str]:
    """Return the settings of a book below `root` with the state folder `data`."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "QDRANT_URL": os.environ.get("QDRANT_URL", ""),
        "QDRANT_COLLECTION": f"distributed-{data}",
        "DOCS_DIR": str(root / "docs"),
        "DATA_DIR": str(root / data),
        "SITE_BASE_URL": "/book/",
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_DIM": str(DIM),
        "EMBEDDING_BATCH_SIZE": "10",
        "OPENAI_API_KEY": "none",  # pragma: allowlist secret
        "OPENAI_BASE_URL": f"{url}/v1",
        "STORE_LOCK_TIMEOUT_S": "60",
        "LEDGER_URL": os.environ.get("LEDGER_URL", ""),
        "STATE_NAME": data,
    }


def start(environment: Mapping[str, str], *words: str) -> subprocess.Popen[str]:
    """Start the command as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "rag_pipeline.cli", *words],
        env=dict(environment),
        cwd=environment["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def run(environment: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Run the command with `--json`, and return what it printed."""
    out, _ = start(environment, *words, "--json").communicate(timeout=1800)
    return dict(json.loads(out))


def open_context(environment: Mapping[str, str]) -> IngestionContext:
    """Return the services of a book in this process."""
    from rag_pipeline.adapters.connect import connect_services  # noqa: PLC0415  # children need less
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # the same
    from rag_pipeline.ingestion.context import IngestionContext  # noqa: PLC0415  # the same

    os.environ.update(environment)
    settings = load_settings()
    return IngestionContext(settings, connect_services(settings))


def digest_index(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return a hash of all ids, vectors and payloads without times, and the number of points."""
    lines = []
    with closing(open_context(environment).services.catalog.open_current()) as store:
        for point in store.scroll(with_vectors=True):
            payload = {key: value for key, value in point.payload.items() if key != "ingested_at"}
            dense = point.vectors.dense.tolist() if point.vectors else None
            lines.append(json.dumps([point.point_id, payload, dense], sort_keys=True))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16], len(lines)


def compare_speed(root: Path, sizes: Sizes, url: str) -> bool:
    """Index a book with one process and with three workers, and print the times."""
    print(f"\n{sizes.docs} documents, an embedding service that waits {sizes.wait_s} s for a text")
    print("workers   seconds   documents/s")
    times, digests = {}, set()
    for count in (1, _WORKERS):
        environment = make_environment(root, f"speed-{count}", url)
        begun = time.monotonic()
        report = run(environment, "ingest", "--workers", str(count))
        times[count] = time.monotonic() - begun
        print(f"{count:7} {times[count]:9.1f} {report['docs_processed'] / times[count]:13.1f}")
        digests.add(digest_index(environment))
    print(f"three workers are {times[1] / times[_WORKERS]:.2f} times as fast as one")
    if sizes.docs == _SHORT.docs:
        print("so few documents take less time than the start of the worker processes")
    return check("the index is the same", len(digests) == 1)


def kill_workers(root: Path, sizes: Sizes, url: str, chance: random.Random) -> bool:
    """Edit pages, and kill and stop workers while they index them; then compare the index."""
    environment = make_environment(root, "kills", url)
    killed, stopped, edition = 0, 0, 0
    while killed < sizes.kills:
        edition += 1
        for number in chance.sample(range(sizes.docs), sizes.docs // 2):
            write_page(root / "docs", number, edition)
        process = start(environment, "ingest", "--workers", str(_WORKERS))
        while process.poll() is None and not list_workers(process.pid):
            time.sleep(0.05)
        time.sleep(chance.uniform(1.0, 12.0))
        for pid in list_workers(process.pid)[:2]:
            with suppress(ProcessLookupError):
                if chance.random() < 0.3:
                    os.kill(pid, signal.SIGSTOP)
                    stopped += 1
                    time.sleep(chance.uniform(0.5, 3.0))
                    os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
                killed += 1
            time.sleep(chance.uniform(0.0, 2.0))
        if edition % 2:  # the whole machine fails: the command and all its workers
            left = list_workers(process.pid)
            process.kill()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        process.communicate()
    report = run(environment, "ingest", "--workers", str(_WORKERS))
    clean = make_environment(root, "clean", url)
    run(clean, "ingest")
    print(f"\n{killed} workers were killed and {stopped} stopped in {edition} ingestions;")
    print(f"the last ingestion processed {report['docs_processed']} documents")
    same = check(
        "the digest is that of a clean build", digest_index(environment) == digest_index(clean)
    )
    found = run(environment, "audit")["findings"]
    return check("the audit finds nothing", found == []) and check_runs(environment) and same


def check_runs(environment: Mapping[str, str]) -> bool:
    """Check that no Dagster run counts as in progress, after an ingestion ended dead runs."""
    import dagster as dg  # noqa: PLC0415  # only this process and workers need it

    from rag_pipeline.orchestration.dead_runs import IN_FLIGHT  # noqa: PLC0415  # the same

    home = next(Path(environment["DATA_DIR"]).glob("*/dagster"))
    os.environ["DAGSTER_HOME"] = str(home)
    with dg.DagsterInstance.get() as instance:
        left = instance.get_runs(dg.RunsFilter(statuses=list(IN_FLIGHT)))
    return check("no run counts as in progress", not left)


def create_together(environments: list[dict[str, str]], number: int, barrier: Barrier) -> None:
    """Create the collection of each book at the same moment as others, and index a third of it."""
    from rag_pipeline.ingestion.parallel.planning import (  # noqa: PLC0415  # a child process
        plan_buckets,
        scan_collection,
    )
    from rag_pipeline.ingestion.parallel.working import index_buckets  # noqa: PLC0415  # the same

    for environment in environments:
        context = open_context(environment)
        barrier.wait(120)
        scan = scan_collection(context)
        for work in plan_buckets(context, scan):
            if work.buckets[0] % _WORKERS == number:
                list(index_buckets(context, work, f"process-{number}"))


def create_collections(root: Path, sizes: Sizes, url: str) -> bool:
    """Let three processes create the same collection at the same moment, many times."""
    environments = [
        make_environment(root, f"creation-{number}", url) | {"DOCS_DIR": str(root / "few")}
        for number in range(sizes.creations)
    ]
    for number in range(9):
        write_page(root / "few", number)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(_WORKERS)
    processes = [
        spawn.Process(target=create_together, args=(environments, number, barrier))
        for number in range(_WORKERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(1800)
    clean = make_environment(root, "few-clean", url) | {"DOCS_DIR": str(root / "few")}
    run(clean, "ingest")
    wanted = digest_index(clean)
    same = sum(digest_index(environment) == wanted for environment in environments)
    print(
        f"\n{sizes.creations} collections, each created by {_WORKERS} processes at the same moment"
    )
    ended = check("all processes ended well", all(process.exitcode == 0 for process in processes))
    return (
        check(f"{same} have one current collection with all points", same == sizes.creations)
        and ended
    )


def switch_collections(root: Path, sizes: Sizes) -> bool:
    """Let four processes create and switch collections at the same moment, and check the points."""
    settings = {
        "docs_dir": root / "docs",
        "data_dir": root / "switches",
        "ledger_url": os.environ["LEDGER_URL"],
        "qdrant_url": os.environ.get("QDRANT_URL", ""),
    }
    print(f"\n{PROCESSES} processes, each with a STATE_NAME of its own")
    right = True
    for claim, act, rounds in (
        (
            "aligned first creations left one collection with all points",
            create_aligned,
            sizes.creations,
        ),
        (
            "aligned switches left one current collection with all points",
            switch_aligned,
            sizes.switches,
        ),
    ):
        problems = act(settings, rounds)
        for problem in problems:
            print(f"  {problem}")
        right = check(f"{rounds} {claim}", not problems) and right
    return right


def scan_unchanged(environment: dict[str, str], results: Any) -> None:  # noqa: ANN401  # a queue
    """Scan a book without changes in a process of its own, and return seconds and peak memory."""
    from rag_pipeline.ingestion.planning import scan_docs  # noqa: PLC0415  # a child process

    context = open_context(environment)
    begun = time.monotonic()
    scan = scan_docs(context)
    seconds = time.monotonic() - begun
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((seconds, peak_mb, scan.plan.is_empty))


def scan_large_books(root: Path, sizes: Sizes, url: str) -> bool:
    """Scan large books whose ledger says that nothing changed, and print time and memory."""
    from rag_pipeline.ingestion.planning import choose_collection, scan_docs  # noqa: PLC0415  # see above
    from rag_pipeline.ingestion.stages import IngestionRun  # noqa: PLC0415  # see above

    print("\nA scan without changes")
    print("documents   seconds   peak MB")
    right = True
    for count in sizes.scans:
        docs = root / f"large-{count}"
        for number in range(count):
            write_page(docs, number)
        environment = make_environment(root, f"scan-{count}", url) | {"DOCS_DIR": str(docs)}
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
        process = spawn.Process(target=scan_unchanged, args=(environment, results))
        process.start()
        process.join(600)
        seconds, peak_mb, is_empty = results.get()
        print(f"{count:9} {seconds:9.2f} {peak_mb:9.0f}")
        right = check("nothing is to be done", is_empty) and right
    return right


def check(claim: str, holds: bool) -> bool:  # noqa: FBT001  # reads as a sentence
    """Print whether a claim holds, and return it."""
    print(f"  {'ok' if holds else 'FAILED'}: {claim}")
    return holds


def main() -> int:
    """Run all parts and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--short", action="store_true", help="a form of about two minutes")
    parser.add_argument("--seed", type=int, default=1, help="of the random points")
    parser.add_argument("--only", choices=["speed", "kills", "creations", "switches", "scans"])
    parser.add_argument("--files", action="store_true", help="keep the ledger and locks in files")
    parser.add_argument("--wait", type=float, help="seconds that the service waits for a text")
    arguments = parser.parse_args()
    sizes = _SHORT if arguments.short else _FULL
    if arguments.wait is not None:
        sizes = dataclasses.replace(sizes, wait_s=arguments.wait)
    server = os.environ.get("QDRANT_URL", "")
    print(f"store: {server or 'embedded (no Qdrant server: QDRANT_URL is not set)'}")
    has_postgres = any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and not arguments.files
    print("workers: processes of this machine with one DATA_DIR")
    print(f"ledger and locks: {'Postgres' if has_postgres else 'files'}")
    print(f"seed: {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="distributed-") as folder:
        root = Path(folder)
        for number in range(sizes.docs):
            write_page(root / "docs", number)
        chance = random.Random(arguments.seed)  # noqa: S311  # not used for secrets
        with (
            serve(make_service(sizes.wait_s)) as slow,
            serve(make_service(0.02)) as fast,
            run_postgres() if has_postgres else nullcontext("") as ledger_url,
        ):
            os.environ["LEDGER_URL"] = ledger_url
            parts: dict[str, Callable[[], bool]] = {
                "speed": lambda: compare_speed(root, sizes, slow.url),
                "kills": lambda: kill_workers(root, sizes, slow.url, chance),
                "creations": lambda: create_collections(root, sizes, fast.url),
                "switches": lambda: switch_collections(root, sizes),
                "scans": lambda: scan_large_books(root, sizes, fast.url),
            }
            results = [part() for name, part in parts.items() if arguments.only in {None, name}]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
