"""Protocol of the model that writes answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


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
