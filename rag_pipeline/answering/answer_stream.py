"""The stream of an answer that is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.closing import Closing, InterruptibleGenerator
from rag_pipeline.core.errors import AnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from rag_pipeline.answering.models import Answer, GroundedResponse
    from rag_pipeline.retrieval.models import RetrievalResult


class AnswerStream(Closing):
    """An iterator over the pieces of an answer's text while the answer is being written.

    The property `answer` returns the complete answer. Closing the stream, or leaving its `with`
    block, aborts the model's request. Any thread may close it; for a thread that waits for the next
    piece, the iteration then ends.

    Attributes:
        result: The passages that retrieval found.
        grounding: The sources, and the decision whether they suffice. Known before the first piece.
    """

    def __init__(
        self,
        result: RetrievalResult,
        grounding: GroundedResponse,
        pieces: Generator[str, None, Answer],
        abort: Callable[[], None] = lambda: None,
    ) -> None:
        self.result = result
        self.grounding = grounding
        self._pieces = InterruptibleGenerator(pieces, abort)
        self._answer: Answer | None = None

    def __iter__(self) -> Iterator[str]:
        """Return the stream itself, because it is an iterator."""
        return self

    def __next__(self) -> str:
        """Return the next piece of the answer's text, which is never empty."""
        try:
            return next(self._pieces)
        except StopIteration as end:
            if end.value is not None:
                self._answer = end.value
            raise

    @property
    def answer(self) -> Answer:
        """The complete answer. Reading it first consumes the rest of the stream.

        Raises:
            AnswerError: The stream was closed or failed before the answer was complete.
        """
        for _ in self:
            pass
        if self._answer is None:
            message = "the stream ended before the answer was complete. Ask the question again"
            raise AnswerError(message)
        return self._answer

    def close(self) -> None:
        """Abort the model's request. Any thread may call this, also repeatedly."""
        self._pieces.close()
