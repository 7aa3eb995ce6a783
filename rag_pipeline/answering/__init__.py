"""Turn retrieved passages into answers with citations, or into refusals.

Each public name is imported when it is first used. A chat model's client is imported only when a
model is asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag_pipeline.answering.assistant import Assistant, answer, open_assistant, stream_answer
    from rag_pipeline.answering.grounding import apply_grounding_policy
    from rag_pipeline.answering.models import (
        Answer,
        AnswerKind,
        AnswerSentence,
        GroundedResponse,
        Level,
        Notice,
        Passage,
        Reason,
        Source,
        Turn,
    )
    from rag_pipeline.answering.preparing import PreparedAnswer
    from rag_pipeline.answering.streams import AnswerStream, AsyncAnswerStream
    from rag_pipeline.answering.voice import Voice

__all__ = [
    "Answer",
    "AnswerKind",
    "AnswerSentence",
    "AnswerStream",
    "Assistant",
    "AsyncAnswerStream",
    "GroundedResponse",
    "Level",
    "Notice",
    "Passage",
    "PreparedAnswer",
    "Reason",
    "Source",
    "Turn",
    "Voice",
    "answer",
    "apply_grounding_policy",
    "open_assistant",
    "stream_answer",
]

_MODULES: Final = {
    "AnswerStream": "streams",
    "Assistant": "assistant",
    "AsyncAnswerStream": "streams",
    "PreparedAnswer": "preparing",
    "Voice": "voice",
    "open_assistant": "assistant",
    "answer": "assistant",
    "stream_answer": "assistant",
    "apply_grounding_policy": "grounding",
}
"""The module of each public name that is not in `models`."""


def __getattr__(name: str) -> object:
    """Import and return a public name of the package when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'models')}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names of the package, including those that are not imported yet."""
    return __all__
