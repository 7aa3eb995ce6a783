"""Resources: what assets, sensors and checks are given by `definitions.py`.

A plain object under `dg.ResourceParam`: settings are read from the environment in one place
(core.settings), so there is nothing to configure in Dagster's own way.
"""

from collections.abc import Callable
from functools import cached_property

from rag_pipeline.ingestion.run import IngestionEnvironment


class IngestionResource:
    """Gives an ingestion environment, built on first use and kept for the process.

    Args:
        build: Makes the environment; called once, when a run or a sensor tick needs it, so that
            loading definitions reads no settings and opens nothing.
    """

    def __init__(self, build: Callable[[], IngestionEnvironment]) -> None:
        """Keep the builder."""
        self._build = build

    @cached_property
    def environment(self) -> IngestionEnvironment:
        """The environment of this process."""
        return self._build()
