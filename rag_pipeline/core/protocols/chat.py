"""Protocol of the model that writes answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
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


class ChatModel(Protocol):
    """A language model that answers messages with text."""

    @property
    def name(self) -> str:
        """Name of the model, as the service that runs the model knows it."""

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Request an answer to the messages and yield its text piece by piece.

        The request is sent when the first piece is read. Any thread may close the generator to end
        the request. An implementation may be a plain generator: if it is closed while another
        thread reads it, it ends after its next piece.

        Yields:
            Pieces of text in order, none of them empty.

        Returns:
            True if the answer is complete; False if the token limit or the service's content filter
            cut it off.

        Raises:
            AnswerTimeoutError: The answer was not complete within the time limit.
            AnswerServiceError: The service cannot be reached or is overloaded, or the stream broke
                off.
            AnswerError: The service's response is not an answer.
            ConfigurationError: The service refused the API key or the name of the model.
        """


class ChatStream(Protocol):
    """An asynchronous iterator over the pieces of a model's text, none of them empty.

    Iterating raises the errors of `ChatModel.stream`.

    Attributes:
        complete: False if the token limit or the service's content filter cut the text off. Known
            after the last piece.
    """

    complete: bool

    def __aiter__(self) -> Self:
        """Return the stream itself."""

    async def __anext__(self) -> str:
        """Return the next piece of text."""

    async def aclose(self) -> None:
        """Abort the request. A second call does nothing.

        Another task may call this while one waits for a piece; its iteration then ends.
        """


@runtime_checkable
class AsyncChatModel(ChatModel, Protocol):
    """A language model that can also write without occupying a thread."""

    def astream(self, messages: Sequence[ChatMessage]) -> ChatStream:
        """Return a stream of the answer. The request is sent when the first piece is read."""
