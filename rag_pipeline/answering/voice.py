"""The voice of the assistant: its name, what it calls its source, and its sentences by language."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.answering.models import Answer, Notice

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings

_TEXTS: Final = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))
"""Texts by table, code and language; the file describes them."""


@dataclass(frozen=True, slots=True)
class Voice:
    """The name, language and words of the assistant, and whether it tells solutions.

    Attributes:
        source: What the source of all answers is called, such as `book` or `documentation`.
        name: Name of the assistant.
        audience: For whom it writes.
        instructions: Further instructions about style for a model.
        language: Language of its fixed sentences: en, de, es or fr.
        tells_solutions: True if it may tell the solutions of quizzes.
    """

    source: str = "book"
    name: str = "RoboTutor"
    audience: str = "a university student"
    instructions: str = ""
    language: str = "en"
    tells_solutions: bool = False

    @property
    def named_source(self) -> str:
        """The source with its article, such as "the book"."""
        known: dict[str, str] = _TEXTS["sources"].get(self.source.strip().lower(), {})
        other = f"the {self.source}" if self.language == "en" else self.source
        return known.get(self.language, other)

    def say(self, code: str, **data: object) -> str:
        """Return a sentence in the language of the assistant."""
        source = self.named_source
        names = {"source": source, "Source": source[:1].upper() + source[1:], "bare": self.source}
        sentence: str = _TEXTS["sentences"][code][self.language]
        return sentence.format(**names | data)

    def count(self, unit: str, count: int) -> str:
        """Return a number with the name of what is counted: modules, chapters or pages."""
        return f"{count} {_TEXTS['counted'][unit][self.language][count != 1]}"

    def note(self, code: str, **data: Any) -> Notice:  # noqa: ANN401  # values of JSON
        """Return a notice with its sentence."""
        return Notice(code, self.say(code, **data), data)


def read_voice(settings: Settings) -> Voice:
    """Return the voice that the settings describe."""
    return Voice(**{one.name: getattr(settings, f"assistant_{one.name}") for one in fields(Voice)})


_FOR_OPERATORS: Final = frozenset({"citations_added", "citations_corrected"})


def list_shown(answer: Answer) -> list[Notice]:
    """Return the notices to show below an answer.

    Notices about corrected citations are for programs. The sentence of a notice that precedes the
    passages is not repeated.
    """
    return [
        notice
        for notice in answer.notices
        if notice.code not in _FOR_OPERATORS and notice.text not in answer.text
    ]
