"""Answers on the grounds of passages found: the grounding policy, citations, refusals, generation.

Each name below is loaded when first used; a model's client only when a model is really asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag_pipeline.answering.generation import AnswerStream, answer, stream_answer
    from rag_pipeline.answering.grounding import apply_grounding_policy
    from rag_pipeline.answering.models import (
        Answer,
        AnswerKind,
        AnswerSentence,
        GroundedResponse,
        Reason,
        Source,
    )

__all__ = [
    "Answer",
    "AnswerKind",
    "AnswerSentence",
    "AnswerStream",
    "GroundedResponse",
    "Reason",
    "Source",
    "answer",
    "apply_grounding_policy",
    "stream_answer",
]

_MODULES: Final = {
    "AnswerStream": "generation",
    "answer": "generation",
    "stream_answer": "generation",
    "apply_grounding_policy": "grounding",
}
"""Where public names live; all others are plain data."""


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'models')}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names alone."""
    return __all__
