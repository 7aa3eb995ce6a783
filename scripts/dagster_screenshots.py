"""Take the screenshots of docs/how-to/dagster.md with a headless Chromium.

    python scripts/dagster_screenshots.py [--chromium chromium]

The script indexes the first module of the book in a temporary folder, breaks one page, starts the
Dagster UI, and writes the pictures to docs/assets/dagster. It takes about two minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "assets" / "dagster"
PAGES = {
    "timeline": "/overview",
    "partitions": "/assets/parsed_docs?view=partitions&partition=broken.md",
    "checks": "/assets/qdrant_points?view=checks",
    "lineage": "/asset-groups?open-nodes%5B0%5D=rag_pipeline%40__repository__%3Aingestion",
}
BROKEN = "---\ntitle: [unclosed\n---\n\nText.\n"
LONGEST_START_S = 300


def index_book(environment: dict[str, str], docs: Path) -> None:
    """Index the pages, and then once more with a page that fails."""
    command = [str(Path(sys.executable).with_name("rag-pipeline")), "ingest"]
    subprocess.run(command, env=environment, check=True)
    (docs / "broken.md").write_text(BROKEN, encoding="utf-8")
    subprocess.run(command, env=environment, check=False)


@contextmanager
def run_ui(environment: dict[str, str]) -> Iterator[str]:
    """Run the UI without its daemon during a `with` block, and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    prepared = [sys.executable, "-m", "rag_pipeline.orchestration.instance"]
    webserver = [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml", "-p", str(port)]
    process = subprocess.Popen([*prepared, *webserver], env=environment, cwd=ROOT)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(LONGEST_START_S):
            try:
                urllib.request.urlopen(f"{address}/server_info", timeout=5).close()  # noqa: S310  # http to 127.0.0.1
                break
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def main() -> None:
    """Read the options and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default="chromium", help="the browser to use")
    browser = parser.parse_args().chromium
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        docs = Path(name) / "docs"
        shutil.copytree(ROOT / "website" / "docs" / "module-1", docs)
        places = {"DOCS_DIR": str(docs), "DATA_DIR": str(Path(name) / "data"), "DAGSTER_HOME": ""}
        site = {"SITE_BASE_URL": "/book/", "SITE_TRAILING_SLASH": "false"}
        environment = os.environ | places | site | {"ASSET_OWNERS": "team:robotics"}
        index_book(environment, docs)
        with run_ui(environment) as address:
            for picture, page in PAGES.items():
                flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
                flags += ["--window-size=1400,800", "--virtual-time-budget=30000"]
                flags += [f"--user-data-dir={name}/browser"]
                flags += [f"--screenshot={PICTURES / picture}.png", f"{address}{page}"]
                subprocess.run([browser, *flags], check=True, capture_output=True, timeout=180)


if __name__ == "__main__":
    main()
