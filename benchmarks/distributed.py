"""Measure and break an ingestion by several worker processes, and print a table for each part.

    python benchmarks/distributed.py [--short] [--seed 1] [--only speed]

The parts are in the folder `several_workers`. The script exits with code 1 if a result is wrong. It
ends all its processes.

The embedding service is a server on 127.0.0.1 that waits for each text. The ledger and the locks
are in a Postgres server that the script starts, or in files if Postgres is not installed or
`--files` is given. The store is the embedded one, which admits one process at a time; with
QDRANT_URL it is that server.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from several_workers.book import Bench, Sizes, make_service, write_page
from several_workers.clocks import shift_clocks
from several_workers.creations import create_collections, switch_collections
from several_workers.differences import mix_workers
from several_workers.hosts import use_namespaces, use_object_store
from several_workers.kills import kill_workers, stop_workers
from several_workers.outages import interrupt_services
from several_workers.speed import compare_memory, compare_speed, scan_large_books

from rag_pipeline_tests.adapters.database.databases import run_postgres
from rag_pipeline_tests.loopback import serve

if TYPE_CHECKING:
    from collections.abc import Callable

_FULL: Final = Sizes(
    docs=300,
    wait_s=0.4,
    speed_waits_s=(0.4, 1),
    kills=20,
    stop_s=60,
    outage_s=30,
    creations=50,
    switches=20,
    scans=(10_000, 100_000),
    memory=(1_000, 10_000),
)
_SHORT: Final = Sizes(
    docs=30,
    wait_s=0.1,
    speed_waits_s=(0.1,),
    kills=3,
    stop_s=5,
    outage_s=3,
    creations=3,
    switches=3,
    scans=(1_000,),
    memory=(20, 80),
)
# The tests create and switch collections from several processes too.
_LONG_ONLY: Final = {"speed", "clocks", "differences", "creations", "switches"}
_PARTS: Final[dict[str, Callable[[Bench], None]]] = {
    "speed": compare_speed,
    "kills": kill_workers,
    "stops": stop_workers,
    "s3": use_object_store,
    "outages": interrupt_services,
    "clocks": shift_clocks,
    "differences": mix_workers,
    "hosts": use_namespaces,
    "creations": create_collections,
    "switches": switch_collections,
    "scans": scan_large_books,
    "memory": compare_memory,
}


def main() -> int:
    """Run all parts and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--short", action="store_true", help="a form of a few minutes")
    parser.add_argument("--seed", type=int, default=1, help="of the random points")
    parser.add_argument("--only", choices=[*_PARTS])
    parser.add_argument("--files", action="store_true", help="keep the ledger and locks in files")
    parser.add_argument("--wait", type=float, help="seconds that the service waits for a text")
    arguments = parser.parse_args()
    sizes = _SHORT if arguments.short else _FULL
    if arguments.wait is not None:
        sizes = dataclasses.replace(sizes, wait_s=arguments.wait, speed_waits_s=(arguments.wait,))
    server = os.environ.get("QDRANT_URL", "")
    print(f"store: {server or 'embedded (no Qdrant server: QDRANT_URL is not set)'}")
    has_postgres = any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and not arguments.files
    print(f"ledger and locks: {'Postgres' if has_postgres else 'files'}")
    print(f"seed: {arguments.seed}")
    with (
        tempfile.TemporaryDirectory(prefix="distributed-") as folder,
        serve(make_service(sizes.wait_s)) as slow,
        serve(make_service(0.02)) as fast,
        run_postgres() if has_postgres else nullcontext("") as ledger_url,
    ):
        os.environ["LEDGER_URL"] = ledger_url
        chance = random.Random(arguments.seed)  # noqa: S311  # not used for secrets
        bench = Bench(Path(folder), sizes, slow, fast, chance)
        for number in range(sizes.docs):
            write_page(bench.root / "docs", number)
        left_out = _LONG_ONLY if arguments.short else set[str]()
        for name, part in _PARTS.items():
            if arguments.only == name or (arguments.only is None and name not in left_out):
                begun = time.monotonic()
                part(bench)
                print(f"  ({name}: {time.monotonic() - begun:.0f} s)", flush=True)
    return 0 if all(bench.outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
