"""Resources: the shells in which assets, sensors and checks find what is wired in `definitions.py`.

Belongs here: ConfigurableResource classes. Does not belong here: what an adapter does.
"""

from collections.abc import Callable
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from rag_pipeline.ingestion.run import IngestionEnvironment


class IngestionResource(dg.ConfigurableResource):  # type: ignore[type-arg]  # generic in a value that is unused here
    """Gives an ingestion environment, built on first use and kept for the process.

    Args:
        build: Makes the environment; called once, when a run or a sensor tick needs it.
    """

    _build: Callable[[], IngestionEnvironment] = PrivateAttr()
    _environment: IngestionEnvironment | None = PrivateAttr(default=None)

    def __init__(self, build: Callable[[], IngestionEnvironment], **fields: Any) -> None:  # noqa: ANN401  # passed on to pydantic as they are
        """Keep the builder; loading definitions reads no settings and opens nothing."""
        super().__init__(**fields)
        self._build = build

    @property
    def environment(self) -> IngestionEnvironment:
        """The environment of this process."""
        if self._environment is None:
            self._environment = self._build()
        return self._environment
