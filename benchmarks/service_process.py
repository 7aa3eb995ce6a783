"""Start `rag-pipeline serve` for measurements, and end it by its process id."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.settings.rules import OWN_SITE

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_LIMIT_S = 60
_UNLIMITED = {"SERVE_CLIENT_RATE": "", "SERVE_TOTAL_RATE": "", "SERVE_API_KEY": ""}


@dataclass(frozen=True)
class RunningService:
    """A service that runs in a process.

    Attributes:
        url: Address of the service.
        process_id: Id of the process.
    """

    url: str
    process_id: int

    def read_memory_mb(self) -> float:
        """Return the resident memory of the process, in MB."""
        status = Path(f"/proc/{self.process_id}/status").read_text("utf-8")
        (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
        return int(kilobytes) / 1024


@contextmanager
def run_service(awaited: str = "/readyz", **settings: str) -> Iterator[RunningService]:
    """Start the service and end it afterwards.

    It has no rate limits and no model unless the settings name one. Its question log is a temporary
    file.

    Args:
        awaited: The service is yielded once this path answers with a status below 400.
        settings: Environment variables of the service.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        defaults = {"ANSWER_MODEL": "", "QUESTION_LOG_URL": f"sqlite:///{folder}/log.sqlite"}
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_pipeline.cli", "serve", "--port", str(port)],
            env=os.environ | _UNLIMITED | defaults | settings,
            stdout=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until(f"{url}{awaited}", process)
            yield RunningService(url, process.pid)
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.perf_counter() + _START_LIMIT_S
    while time.perf_counter() < end:
        if process.poll() is not None:
            sys.exit(f"the service ended with status {process.returncode}")
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    sys.exit(f"{url} did not answer within {_START_LIMIT_S} s")


@contextmanager
def run_slow_model() -> Iterator[str]:
    """Start `slow_model.py` and yield its address."""
    script = [sys.executable, str(Path(__file__).parent / "slow_model.py")]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int((process.stdout or sys.stdin).readline())
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def copy_indexed_book() -> Iterator[dict[str, str]]:
    """Copy the pages and their index, and yield the settings that select the copy."""
    source = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        changes = {
            "DOCS_DIR": f"{folder}/site/docs",
            "DATA_DIR": f"{folder}/data",
            "SITE_BASE_URL": OWN_SITE.base_url,  # the index contains links to this site
            "SITE_TRAILING_SLASH": "false",
        }
        copy = load_settings(docs_dir=changes["DOCS_DIR"], data_dir=changes["DATA_DIR"])
        for original, target in (
            (source.docs_dir, copy.docs_dir),
            (source.state_dir, copy.state_dir),
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            # `cp` keeps the holes of the store's files
            subprocess.run(["cp", "-rp", str(original), str(target)], check=True)  # noqa: S607  # any cp
        yield changes
