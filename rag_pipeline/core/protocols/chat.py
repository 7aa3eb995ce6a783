"""Protocol of the model that writes answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat model.

    Attributes:
        role: `system` for instructions, `user` for the question and its sources.
        content: Text of the message.
    """

    role: Literal["system", "user"]
    content: str


class ChatStream(Protocol):
    """An asynchronous iterator over the pieces of a model's text, none of them empty.

    Attributes:
        complete: False if the token limit or the service's content filter cut the text off. Known
            after the last piece.
    """

    complete: bool

    def __aiter__(self) -> Self:
        """Return the stream itself."""

    async def __anext__(self) -> str:
        """Return the next piece of text.

        Raises:
            AnswerTimeoutError: No text arrived within the time limit.
            AnswerServiceError: The service cannot be reached or is overloaded, or the stream broke
                off.
            AnswerContextError: The messages are longer than the context of the model.
            AnswerError: The service's response is not an answer.
            ConfigurationError: The service refused the API key or the name of the model.
        """

    async def aclose(self) -> None:
        """Abort the request. A second call does nothing.

        Another task may call this while one waits for a piece; its iteration then ends.
        """


class ChatModel(Protocol):
    """A language model that answers messages with text."""

    @property
    def name(self) -> str:
        """Name of the model, as the service that runs the model knows it."""

    @property
    def prompt_tokens(self) -> int:
        """Most tokens of the messages, so that they and the answer fit in the model's context."""

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, or a safe estimate of it."""

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return a stream of the answer to the messages.

        The request is sent when the first piece is read.

        Args:
            messages: The instructions and the question.
            stop: At most four texts at which the model ends its answer.
        """
