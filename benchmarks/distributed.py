"""Index one book with three Dagster workers over Postgres and break them, then compare the index.

    python benchmarks/distributed.py [--documents 120] [--seed 1]

A coordinator divides what is not indexed into runs, as the sensor does. Each worker is a process
that executes one Dagster run. Workers are killed and stopped, and Postgres is stopped once. The
coordinator repeats this until a scan finds nothing to do. The index must then be equal to one that
a single undisturbed process built, and an audit must find nothing. Needs Postgres (`apt install
postgresql`). The embedder hashes terms, and the Qdrant server is the embedded engine behind HTTP.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import psycopg
from bench_ingest import write_book

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.protocols import ALL_POINTS
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.audit import audit_index
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.adapters.database.databases import run_postgres
from rag_pipeline_tests.hashing_embedder import HashingEmbedder
from rag_pipeline_tests.qdrant_engine import serve_qdrant

_WORKERS = 3
_PAGE_DOCS = 5
_STOPPED_S = 15.0  # longer than the detection of a dead run takes
_OUTAGE_S = 10.0
_LONGEST_S = 900.0


def open_context() -> IngestionContext:
    """Return the context that the environment describes, with an embedder that hashes terms."""
    settings = load_settings(_env_file="")
    return IngestionContext(
        settings, dataclasses.replace(connect_services(settings), embedder=HashingEmbedder())
    )


def work(doc_ids: tuple[str, ...]) -> None:
    """Execute one Dagster run that indexes the documents, in this process."""
    from rag_pipeline.orchestration.instance import prepare_dagster_home  # noqa: PLC0415  # before Dagster is imported

    context = open_context()
    prepare_dagster_home(context.settings)
    from rag_pipeline.definitions import build_defs  # noqa: PLC0415  # see above
    from rag_pipeline.orchestration.launch import run_ingest_job  # noqa: PLC0415  # see above
    from rag_pipeline.orchestration.resources import Ingestion  # noqa: PLC0415  # see above

    definitions = build_defs({"ingestion": Ingestion(lambda: context)})
    run_ingest_job(definitions, IngestionRequest(doc_ids or None), context.services.run_locks)


def start_worker(environment: dict[str, str], doc_ids: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start a process that indexes the documents; all documents if none are named."""
    command = [sys.executable, __file__, "--work", json.dumps(doc_ids)]
    folder = Path(environment["DATA_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "workers.log").open("ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


class Faults:
    """Kills and stops of workers, and one outage of Postgres, at random moments."""

    def __init__(self, seed: int, postgres: str) -> None:
        self._chosen = random.Random(seed)  # noqa: S311  # not used for secrets
        self._postgres = postgres
        self._next = time.monotonic() + 8.0
        self._stopped: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.counts = {"kill": 0, "stop": 0, "outage": 0}
        self._left = ["kill", "stop", "kill", "outage", "stop", "kill", "kill"]

    def happen(self, workers: list[subprocess.Popen[bytes]]) -> None:
        """Let the next fault happen if it is due, and continue workers that were stopped."""
        now = time.monotonic()
        for since, worker in list(self._stopped):
            if now - since > _STOPPED_S:
                worker.send_signal(signal.SIGCONT)
                self._stopped.remove((since, worker))
        living = [worker for worker in workers if worker.poll() is None]
        if now < self._next or not living or not self._left:
            return
        kind, worker = self._left.pop(0), self._chosen.choice(living)
        self.counts[kind] += 1
        if kind == "kill":
            worker.kill()
        elif kind == "stop":
            worker.send_signal(signal.SIGSTOP)
            self._stopped.append((now, worker))
        else:
            stop_postgres(self._postgres)
        self._next = time.monotonic() + self._chosen.uniform(3.0, 10.0)


def stop_postgres(url: str) -> None:
    """Stop the Postgres server as a crash does, and start it again after a while."""
    with psycopg.connect(url) as connection:
        data = str(connection.execute("show data_directory").fetchall()[0][0])
    (tools,) = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
    options = Path(data, "postmaster.opts").read_text("utf-8").split(maxsplit=1)[1]
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    control = [*prefix, str(tools / "pg_ctl"), "-D", data, "-w"]
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd="/", capture_output=True)
    time.sleep(_OUTAGE_S)
    start = ["-o", options.replace('"', ""), "-l", str(Path(data).parent / "log"), "start"]
    quiet = subprocess.DEVNULL  # the server inherits the streams
    subprocess.run([*control, *start], check=True, cwd="/", stdout=quiet, stderr=quiet)


def index_with_faults(environment: dict[str, str], faults: Faults) -> int:
    """Index the book with three workers and faults; return how many runs were started."""
    context, runs, deadline = open_context(), 0, time.monotonic() + _LONGEST_S
    workers: dict[subprocess.Popen[bytes], tuple[str, ...]] = {}
    while time.monotonic() < deadline:
        for worker in [worker for worker in workers if worker.poll() is not None]:
            del workers[worker]
        if len(workers) < _WORKERS:
            taken = {doc_id for doc_ids in workers.values() for doc_id in doc_ids}
            left = [str(doc.doc_id) for doc in scan_docs(context).process]
            page = tuple(doc_id for doc_id in left if doc_id not in taken)[:_PAGE_DOCS]
            if page:
                workers[start_worker(environment, page)] = page
                runs += 1
            elif not workers:
                return runs
        faults.happen(list(workers))
        time.sleep(0.5)
    for worker in workers:
        worker.kill()
    sys.exit(f"the book was not indexed in {_LONGEST_S:g} s")


def compute_digest(context: IngestionContext) -> tuple[int, str]:
    """Return the number of points, and a hash of all points without the times of indexing."""
    lines = []
    with closing(context.services.catalog.open_current()) as store:
        for point in store.scroll(ALL_POINTS, with_vectors=True):
            payload = {key: value for key, value in point.payload.items() if key != "ingested_at"}
            vectors = hashlib.sha256(repr(point.vectors).encode()).hexdigest()
            lines.append(json.dumps([int(point.point_id), payload, vectors], sort_keys=True))
    return len(lines), hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def main() -> None:
    """Read the options, build the index twice, and compare the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(tuple(json.loads(arguments.work)))
        return
    with tempfile.TemporaryDirectory() as name, run_postgres() as url:
        root = Path(name)
        write_book(root / "docs", arguments.documents, 10, 8)
        found = {}
        for label in ("one process", "three workers"):
            with serve_qdrant(root / label) as (server, _):
                os.environ |= {
                    "DOCS_DIR": str(root / "docs"),
                    "DATA_DIR": str(root / label / "data"),
                    "DATABASE_URL": url,
                    "STATE_NAME": label.replace(" ", "-"),
                    "QDRANT_URL": server.url,
                    "DAGSTER_HOME": str(root / label / "dagster"),
                }
                start, faults = time.monotonic(), Faults(arguments.seed, url)
                if label == "one process":
                    start_worker(dict(os.environ), ()).wait()
                    runs = 1
                else:
                    runs = index_with_faults(dict(os.environ), faults)
                context = open_context()
                findings = len(audit_index(context).findings)
                found[label] = compute_digest(context)
                print(
                    f"{label}: {time.monotonic() - start:.0f} s, {runs} runs, faults "
                    f"{faults.counts}, points and digest {found[label]}, audit {findings} findings"
                )
                if findings:
                    sys.exit(1)
    if len(set(found.values())) > 1:
        sys.exit("the two indexes differ")


if __name__ == "__main__":
    main()
