"""A retriever that is opened when the first question about the book is asked."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from rag_pipeline.core.closing import Closing
from rag_pipeline.retrieval.protection.limits import Protection
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.protection.limits import Observer
    from rag_pipeline.retrieval.queries import Query
    from rag_pipeline.retrieval.retriever import Retriever


class LateRetriever(Closing):
    """A retriever that answers from selected texts without opening the collection.

    Greetings and questions about a selected text thus need no collection and no embedding service.

    Args:
        settings: Settings with the collection.
        observe: Called for each operation that ended, with the error or None.

    Attributes:
        protection: The time limits, circuit breakers and log. The circuit breakers stay the same
            when the retriever is opened.
    """

    def __init__(self, settings: Settings, observe: Observer | None = None) -> None:
        self.protection = Protection(observe=observe)
        self._settings = settings
        self._opened: Retriever | None = None
        self._opening = Lock()

    def open(self) -> Retriever:
        """Return the retriever; the first call opens it, which may ask the store for its model.

        Raises:
            RagPipelineError: As described for `open_retriever`. The next call tries again.
        """
        from rag_pipeline.retrieval.opening import open_retriever  # noqa: PLC0415  # see __init__

        with self._opening:
            if self._opened is None:
                opened = open_retriever(self._settings)
                self.protection = self.protection.limited_by(opened.protection.limits)
                self._opened = opened.protected_by(self.protection)
            return self._opened

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the passages for a query; raises the errors of `Retriever.retrieve` and `open`."""
        if query.mode == Mode.SELECTED_TEXT_ONLY:
            return self._retrieve_selected(query)
        return self.open().retrieve(query)

    def close(self) -> None:
        """Close the collection; a later question opens it again."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()

    def _retrieve_selected(self, query: Query) -> RetrievalResult:
        from rag_pipeline.adapters.connect import connect_selection_embedder  # noqa: PLC0415  # see __init__
        from rag_pipeline.retrieval.selected_text import retrieve_selected  # noqa: PLC0415  # see __init__

        if self._opened is not None:
            return self._opened.retrieve(query)
        chosen, local = self._settings, connect_selection_embedder()
        with self.protection.watch("retrieve", [query.question]) as operation:
            operation.result_count = 1
            return self.protection.compare(
                operation,
                lambda: retrieve_selected(
                    query, chosen.selected_text_threshold, chosen.site, local, chosen.sources or ()
                ),
            )
