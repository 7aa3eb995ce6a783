"""Answers that rest on retrieved passages: the grounding policy, citations, refusals, generation.

Each name below is loaded when it is first used; a model's client only when a model is asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rag_pipeline.answering.generation import answer, stream_answer
    from rag_pipeline.answering.grounding import apply_grounding_policy
    from rag_pipeline.answering.models import (
        Answer,
        AnswerKind,
        AnswerSentence,
        AnswerStream,
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
    "answer": "generation",
    "stream_answer": "generation",
    "apply_grounding_policy": "grounding",
}
"""Modules of the public names; all other names are in `models`."""


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'models')}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List only the public names."""
    return __all__
