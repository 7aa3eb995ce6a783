"""Fixtures: the built site, and a report of the proofs at the end of the test run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.settings import Settings
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR
from rag_pipeline.ingestion.site.detection import settle_site
from rag_pipeline_tests.site.proof import BuiltSite, Proof

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
WEBSITE = ROOT / "website"
SOURCES = ("docs/**/*", "src/**/*", "static/**/*", "*.ts", "package-lock.json")

_PROOFS = pytest.StashKey[list[Proof]]()


@pytest.fixture(scope="session")
def default_settings() -> Settings:
    """Return the default settings of the textbook, without the environment and `.env`."""
    return settle_site(Settings.model_construct(docs_dir=OWN_DOCS_DIR))


@pytest.fixture(scope="session")
def built_site(default_settings: Settings) -> BuiltSite:
    """Return the site in website/build; fail if it is missing or older than its sources."""
    built = WEBSITE / "build" / "sitemap.xml"
    if not built.is_file():
        pytest.fail("website/build contains no site. Run `make test-site`, which builds it")
    files = (path for pattern in SOURCES for path in WEBSITE.glob(pattern) if path.is_file())
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    if newest.stat().st_mtime_ns > built.stat().st_mtime_ns:
        name = newest.relative_to(ROOT)
        pytest.fail(f"{name} is newer than website/build. Run `make test-site`, which builds it")
    return BuiltSite(built.parent, default_settings.site_base_url)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[Proof], None]:
    """Return a function that prints a proof's counts at the end of the test run."""
    return request.config.stash.setdefault(_PROOFS, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the counts of the proofs that tests passed to `report`."""
    for proof in config.stash.get(_PROOFS, []):
        terminalreporter.write_line(str(proof))
