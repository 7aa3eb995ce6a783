"""The build under test, and the counts of what was proven as the last lines of the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.settings import Settings
from rag_pipeline_tests.site.proof import BuiltSite, Proof

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
WEBSITE = ROOT / "website"
SOURCES = ("docs/**/*", "src/**/*", "static/**/*", "*.ts", "package-lock.json")

_PROOFS = pytest.StashKey[list[Proof]]()


@pytest.fixture(scope="session")
def default_settings() -> Settings:
    """The settings' defaults, whatever the environment and `.env` say."""
    return Settings.model_construct()


@pytest.fixture(scope="session")
def built_site(default_settings: Settings) -> BuiltSite:
    """The build in website/build, which must be that of the sources as they are now."""
    built = WEBSITE / "build" / "sitemap.xml"
    if not built.is_file():
        pytest.fail("website/build holds no site: run `make site`, or `make test-site` for both")
    files = (path for pattern in SOURCES for path in WEBSITE.glob(pattern) if path.is_file())
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    if newest.stat().st_mtime_ns > built.stat().st_mtime_ns:
        name = newest.relative_to(ROOT)
        pytest.fail(f"{name} is newer than website/build: run `make site`, or `make test-site`")
    return BuiltSite(built.parent, default_settings.site_base_url)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[Proof], None]:
    """Print a proof's counts at the end of the run."""
    return request.config.stash.setdefault(_PROOFS, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write the counts that tests handed to `report`."""
    for proof in config.stash.get(_PROOFS, []):
        terminalreporter.write_line(str(proof))
