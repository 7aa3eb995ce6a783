"""What all tests share: Hypothesis, temporary files, processes that run tests, Dagster's databases.

The environment variable HYPOTHESIS_PROFILE chooses the profile.

The default profile tries the same 60 examples of each property in every run. The profile `nightly`
tries 10,000 examples of each property, different ones in every run.
"""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

_MEMORY = Path("/dev/shm")  # noqa: S108  # pytest makes a folder in it that only its user may read
_MEMORY_BYTES = 4 * 2**30  # a test needs up to some hundred MB, which it gives back at its end
_SLOW_INPUT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=_SLOW_INPUT,
)
settings.register_profile(
    "nightly", max_examples=10_000, deadline=None, suppress_health_check=_SLOW_INPUT
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Keep temporary files in memory if there is room, because stores wait for their disk.

    `PYTEST_DEBUG_TEMPROOT` names another folder.
    """
    chosen = "PYTEST_DEBUG_TEMPROOT"
    if chosen in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    mount = os.statvfs(_MEMORY)
    can_execute = not mount.f_flag & os.ST_NOEXEC
    if can_execute and mount.f_bavail * mount.f_frsize >= _MEMORY_BYTES:
        os.environ[chosen] = str(_MEMORY)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take what collecting the tests makes out of the garbage collection, which would look at it.

    It would take a tenth of the time of all tests. What a test leaves open is collected, and
    noticed, soon after the test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)  # the plugin may be switched off
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`: two for each core.

    About half of the time, tests wait for servers and for processes that they started.
    """
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(scope="session")
def empty_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Dagster in which no run has been recorded, made once for all test processes."""
    import dagster as dg  # noqa: PLC0415  # other tests start without it

    from rag_pipeline.orchestration.instance import INSTANCE_SETTINGS  # noqa: PLC0415  # as above

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    home = shared / "empty-history"
    with FileLock(shared / "empty-history.lock"):
        if not home.is_dir():
            unfinished = shared / "unfinished-history"
            unfinished.mkdir()
            shutil.copy(INSTANCE_SETTINGS, unfinished)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DAGSTER_HOME", str(unfinished))
                dg.DagsterInstance.get().dispose()
            unfinished.rename(home)
    return home


@pytest.fixture
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, without the settings of the environment."""
    from rag_pipeline.core.settings import Settings  # noqa: PLC0415  # as above

    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)
