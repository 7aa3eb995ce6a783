"""Protocol of the model that writes answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat model; `role` is `system` or `user`."""

    role: Literal["system", "user"]
    content: str


class ChatModel(Protocol):
    """Writes text from messages."""

    @property
    def name(self) -> str:
        """The model as its service knows it."""

    def stream(self, messages: Sequence[ChatMessage]) -> Generator[str, None, bool]:
        """Write an answer piece by piece; closing the generator, from any thread, ends the request.

        Nothing is sent before the first piece is asked for. A plain generator will do; closed while
        another thread reads it, it ends with its next piece.

        Yields:
            Pieces of text in order, none of them empty.

        Returns:
            True where the answer is complete, False where the token limit or the service's content
            filter cut it.

        Raises:
            AnswerTimeoutError: Not complete in time.
            AnswerServiceError: Not reached, overloaded, or the stream broke off.
            AnswerError: Anything else that is not an answer.
            ConfigurationError: The key or the model's name was refused.
        """
