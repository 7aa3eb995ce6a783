"""The part in which workers have other settings, another checkout or another release."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import rag_pipeline
from several_workers.book import (
    compare_with_clean_build,
    digest_index,
    run,
    start,
    write_page,
)
from several_workers.hosts import join_store, make_hosts
from several_workers.kills import edit_book
from several_workers.shares import plan_shares, start_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from several_workers.book import Bench


def mix_workers(bench: Bench) -> None:
    """Let workers and commands that differ from the others join an ingestion in progress.

    Each of them is refused with a message and changes nothing. The others complete the index.
    """
    if not os.environ["LEDGER_URL"]:
        print("\ndifferences: not run, because the locks are in files")
        return
    state = {"STATE_URL": (bench.root / "differences-state").as_uri()}
    hosts = make_hosts(bench, "differences", state)
    run(hosts[0], "ingest")
    stale = bench.root / "stale"
    shutil.copytree(bench.root / "docs", stale)
    edit_book(bench, 800)
    release = _make_release(bench.root / "release")
    print("\nWorkers that differ from the others join an ingestion in progress")
    shares = plan_shares(hosts[0])
    worker = start_share(hosts[0], shares[0])
    others: dict[str, tuple[dict[str, str], Path | None]] = {
        "other chunk sizes": ({"CHUNK_MAX_TOKENS": "700"}, None),
        "another embedding model": ({"EMBEDDING_MODEL": "text-embedding-3-large"}, None),
        "an older checkout": (_move_docs(bench, hosts[1], stale), None),
        "another number of buckets": ({"BUCKET_COUNT": "64"}, None),
        "another release": ({}, release),
    }
    refusals = bench.root / "refusals"
    refusals.mkdir()
    started = {
        name: start_share(hosts[1] | changes, shares[1], release=code, said=refusals / name)
        for name, (changes, code) in others.items()
    }
    for name, process in started.items():
        process.join(1800)
        said = (refusals / name).read_text("utf-8") if (refusals / name).exists() else ""
        print(f"{name}: {said[:400]}")
        bench.check("the worker is refused", process.exitcode == 1 and bool(said))
    worker.join(1800)
    bench.check("the worker with the same settings completes its share", worker.exitcode == 0)
    before = digest_index(hosts[0])
    _refuse_commands(bench, hosts[1], release)
    bench.check("nothing has changed", digest_index(hosts[0]) == before)
    report = run(hosts[2], "ingest")
    print(f"the last ingestion processed {report['docs_processed']} documents")
    compare_with_clean_build(bench, hosts[2], "differences-clean")


def _move_docs(bench: Bench, environment: Mapping[str, str], docs: Path) -> dict[str, str]:
    """Return settings with another docs folder, and let them use the store of the book."""
    changes = {"DOCS_DIR": str(docs), "DATA_DIR": str(bench.root / f"data-{docs.name}")}
    join_store({**environment, **changes}, bench.root / "differences-store")
    return changes


def _refuse_commands(bench: Bench, environment: Mapping[str, str], release: Path) -> None:
    """Run the command with a model, a docs folder and a release that the index does not have."""
    part = bench.root / "part"
    write_page(part, 1)
    for name, changes in (
        ("another embedding model", {"EMBEDDING_MODEL": "text-embedding-3-large"}),
        ("a docs folder with one page", _move_docs(bench, environment, part)),
        ("another release", {"PYTHONPATH": str(release)}),
    ):
        process = start({**environment, **changes}, "ingest", "--json")
        out, _ = process.communicate(timeout=600)
        print(f"`rag-pipeline ingest` with {name}: {out.strip()[:300]}")
        bench.check("the command is refused", process.returncode in {1, 2})


def _make_release(folder: Path) -> Path:
    """Copy the package and change its format version, and return the folder for `sys.path`."""
    source = Path(next(iter(rag_pipeline.__path__)))
    copy = folder / source.name
    folder.mkdir()
    shutil.copy(source.parent / "dagster.yaml", folder)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    vectors = copy / "core" / "vectors.py"
    text = vectors.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("FORMAT_VERSION"))
    vectors.write_text(text.replace(line, "FORMAT_VERSION: Final = 99"), encoding="utf-8")
    return folder
