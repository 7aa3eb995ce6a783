"""The generated book of the benchmark, its services and commands, and the checks of its index."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline_tests.hashing_embedder import DIM, HashingEmbedder
from rag_pipeline_tests.loopback import Received, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import dagster as dg

    from rag_pipeline.core.protocols.stores import StoredPoint
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline_tests.loopback import LoopbackServer

WORKERS: Final = 3
_WORDS: Final = [
    "robot",
    "joint",
    "torque",
    "sensor",
    "frame",
    "gait",
    "planner",
    "noise",
    "latency",
]
_PARAGRAPH: Final = 40  # words


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much each part of the benchmark does.

    Attributes:
        docs: Number of documents of the book.
        wait_s: Seconds that the embedding service waits for each text.
        speed_waits_s: The same, for each comparison of one process with several.
        kills: Least number of workers to kill in each part that kills.
        stop_s: Seconds for which a worker is stopped by SIGSTOP.
        outage_s: Seconds for which a service is gone.
        creations: Number of collections that several processes create at the same moment.
        switches: Number of switches of a collection by several processes at the same moment.
        scans: Numbers of documents of the large books.
        memory: Two numbers of documents of the books whose commands are measured.
    """

    docs: int
    wait_s: float
    speed_waits_s: tuple[float, ...]
    kills: int
    stop_s: float
    outage_s: float
    creations: int
    switches: int
    scans: tuple[int, ...]
    memory: tuple[int, int]


@dataclass(slots=True)
class Bench:
    """What all parts need: the sizes, the folder, the embedding services and the random choices.

    Attributes:
        root: Folder for all data of the benchmark. The book is in its folder `docs`.
        sizes: How much to do.
        slow: An embedding service that waits for each text.
        fast: One that waits less.
        chance: The random choices.
        outcomes: Result of each check so far.
    """

    root: Path
    sizes: Sizes
    slow: LoopbackServer
    fast: LoopbackServer
    chance: random.Random
    outcomes: list[bool] = field(default_factory=list)

    @property
    def is_short(self) -> bool:
        """True if the book has too few documents for a measurement."""
        return self.sizes.docs < 100

    def check(self, claim: str, holds: bool) -> None:  # noqa: FBT001  # reads as a sentence
        """Print whether a claim holds, and keep the result."""
        print(f"  {'ok' if holds else 'FAILED'}: {claim}", flush=True)
        self.outcomes.append(holds)


def write_page(docs: Path, number: int, edition: int = 0) -> None:
    """Write one page. Texts and number of sections (1 to 3) differ for each number and edition."""
    seeded = random.Random(f"{number} {edition}")  # noqa: S311  # not used for secrets
    path = docs / f"part-{number % 100}" / f"page-{number}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (" ".join(seeded.choices(_WORDS, k=_PARAGRAPH)) for _ in range(seeded.randint(1, 3)))
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
        "STATE_URL": "",
        "DAGSTER_HOME": "",
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
    with closing(open_context(environment).services.catalog.open_current()) as store:
        lines = [_describe(point) for point in store.scroll(with_vectors=True)]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16], len(lines)


def _describe(point: StoredPoint) -> str:
    payload = {key: value for key, value in point.payload.items() if key != "ingested_at"}
    vectors, sparse = point.vectors, point.sparse
    parts = [
        vectors.dense.tolist() if vectors else None,
        vectors.windows.tolist() if vectors else None,
        [list(sparse.indices), list(sparse.values)] if sparse else None,
    ]
    return json.dumps([point.point_id, payload, parts], sort_keys=True)


def compare_with_clean_build(bench: Bench, environment: Mapping[str, str], name: str) -> None:
    """Check that the index is that of a clean build and that the audit finds nothing in it.

    Args:
        bench: The folder and the services.
        environment: Settings of the book.
        name: Name of the state folder of the clean build.
    """
    from rag_pipeline.ingestion.context import IngestionRequest  # noqa: PLC0415  # slow to import
    from rag_pipeline.ingestion.run import run_ingestion  # noqa: PLC0415  # the same
    from rag_pipeline.ingestion.upkeep.repair import audit_index  # noqa: PLC0415  # the same

    clean = make_environment(bench.root, name, bench.fast.url)
    context = open_context(clean)
    with closing(context.services.cache):
        for _ in run_ingestion(context, IngestionRequest(), name):
            pass
    bench.check("the digest is that of a clean build", is_same_index([environment, clean]))
    found = audit_index(open_context(environment)).findings
    bench.check(f"the audit has {len(found)} findings", not found)


def is_same_index(environments: Sequence[Mapping[str, str]]) -> bool:
    """Return True if the indexes of the books have equal ids, payloads and vectors."""
    return len({digest_index(environment) for environment in environments}) == 1


def find_unfinished_runs(environment: Mapping[str, str]) -> list[str]:
    """Return the ids of the Dagster runs of a book that count as in progress."""
    from rag_pipeline.orchestration.dead_runs import IN_FLIGHT  # noqa: PLC0415  # slow to import

    return _find_runs(environment, {status.value for status in IN_FLIGHT})


def find_failed_runs(environment: Mapping[str, str]) -> list[str]:
    """Return the ids of the Dagster runs of a book that count as failed."""
    return _find_runs(environment, {"FAILURE"})


def count_events(environment: Mapping[str, str]) -> Counter[str]:
    """Return the number of rows of each type in Dagster's event log of a book."""
    with _open_dagster(environment) as instance:
        return Counter(
            entry.dagster_event.event_type_value if entry.dagster_event else "log message"
            for run in instance.get_runs()
            for entry in instance.all_logs(run.run_id)
        )


def _find_runs(environment: Mapping[str, str], states: set[str]) -> list[str]:
    with _open_dagster(environment) as instance:
        return [run.run_id for run in instance.get_runs() if run.status.value in states]


def _open_dagster(environment: Mapping[str, str]) -> dg.DagsterInstance:
    from rag_pipeline.orchestration.launch import open_instance  # noqa: PLC0415  # slow to import

    named = environment["DAGSTER_HOME"]
    home = Path(named) if named else next(Path(environment["DATA_DIR"]).glob("*/dagster"))
    os.environ["DAGSTER_HOME"] = str(home)
    return open_instance()
