"""The check whether the service can answer: the model is warm and the collection fits."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.core.text.tokens import count_tokens
from rag_pipeline.retrieval import count_filter_values
from rag_pipeline.retrieval.queries import Query
from rag_pipeline.serving.api.failures import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering.assistant import Assistant

_WARM_UP: Final = "What is a robot?"
_FRESH_S: Final = 1.0
_LOOK_S: Final = 5.0  # how often the state is looked at until questions can be answered


class Readiness:
    """Checks whether questions can be answered, at most once per second.

    A missing or rebuilt collection is noticed by the next check, without a restart.

    Args:
        assistant: The assistant that answers.
        clock: Returns a time in seconds that never decreases.
    """

    def __init__(self, assistant: Assistant, clock: Callable[[], float] = time.monotonic) -> None:
        self._assistant = assistant
        self._clock = clock
        self._lock = asyncio.Lock()
        self._is_warm = False
        self._checked_at: float | None = None
        self._problem: Exception | None = None

    async def check(self) -> Exception | None:
        """Return the error that a question would meet now; None if the service is ready."""
        async with self._lock:
            now = self._clock()
            if self._checked_at is None or now - self._checked_at >= _FRESH_S:
                self._problem = await asyncio.to_thread(self._probe)
                self._checked_at = self._clock()
            return self._problem

    def _probe(self) -> Exception | None:
        """Search a real question until that succeeds once; afterwards only probe the collection."""
        try:
            retriever = self._assistant.retriever
            if not self._is_warm:
                retriever.retrieve(Query(_WARM_UP))
                count_tokens(_WARM_UP)  # the first call loads a vocabulary, which takes 0.1 s
                count_filter_values(retriever)  # reads the outline of the book, which takes 0.5 s
                self._is_warm = True
            retriever.probe()
        except Exception as error:  # noqa: BLE001  # any error means that a question would fail
            self._is_warm = False
            if not isinstance(error, RagPipelineError):
                log_failure("readiness_failed", error)
            return error
        return None


async def announce_readiness(readiness: Readiness) -> None:
    """Write a line to standard error if questions cannot be answered yet, and one when they can."""
    is_told = False
    while (error := await readiness.check()) is not None:
        if not is_told:
            is_told = True
            reason = str(error) if isinstance(error, RagPipelineError) else describe_kind(error)
            again = "This is checked again without a restart."
            sys.stderr.write(f"Not ready yet: {reason.rstrip('.')}. {again}\n")
        await asyncio.sleep(_LOOK_S)
    sys.stderr.write("Ready for questions.\n")
