"""Find the words of a question that say in which form to answer, and not about what.

Such words are `code` in "A* in python code" and `difference` in "difference between a topic and a
service". They count little in a search, because the text that answers often lacks them, and other
texts are full of them. The rules are for English.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.terms import extract_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CODE_LANGUAGE: Final = (
    r"(?:python|c\+\+|c#|java|javascript|typescript|rust|bash|shell|sql|xml|yaml|json|toml|html|css"
    r"|kotlin|swift|php|ruby|perl|matlab|julia|golang)"
)
"""Pattern of the languages in which a question may ask for code."""

FORM_SHARE: Final = 0.25
"""Share of its weight that a word of the form keeps."""

_CODE: Final = r"(?:code|scripts?|snippets?|examples?)"
_SIDE: Final = r"(?:(?:dis)?advantages|benefits|drawbacks|strengths|weaknesses)"


def compile_all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return compiled patterns that ignore the case of letters."""
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


COUNTED_FORMS: Final = compile_all(
    r"\b(differences?)\s+between\b",
    r"\b(?:and|or|vs\.?|versus|the)\s.*?\b(differences?)\s*[?.!]*$",
    r"\b(differs?|differed|different)\s+from\b",
    r"\b(compar(?:e[sd]?|ing|ison))\b(?=.*\b(?:and|with|to|or|between|of)\b)",
    rf"\b(pros\s+and\s+cons|{_SIDE}(?:\s+(?:and|or)\s+{_SIDE})?)\s+of\b",
    r"\b(formulas?|equations?)\s+(?:for|of)\b",
    r"\bhow\s+(?:to|\w+\s+(?:i|you|we))\s+(write|make|create|build|get|use|do|set\s?up|add)\b",
    rf"\b(?:in|with|using)\s+((?:{CODE_LANGUAGE}\s+)?{_CODE})\s*[?.!]*$",
    rf"(?<!\w)({CODE_LANGUAGE}\s+{_CODE})(?=\s+(?:for|of|to|that|with)\b|\s*[?.!]*$)",
    r"\b((?:example|sample|source)\s+code|code\s+(?:examples?|samples?|snippets?))\b",
    rf"(?<!error )(?<!exit )(?<!status )(?<!vs )\b({_CODE})"
    r"(?=\s+(?:for|of|to|that)\b|\s*[?.!]*$)",
)
"""Patterns of the phrases that name the form. The first group of each is the phrase."""

FORMS: Final = COUNTED_FORMS + compile_all(
    r"\bdo(?:es)?\s+.+\s(mean|stand\s+for|refer\s+to)(?=\s*[?.!]*$|\s+(?:in|for|here)\b)",
    r"\b(definition)\s+of\b",
    r"^(?!(?:what|which|how|where|when|why)\b).+\s(definition|meaning)\s*[?.!]*$",
    r"^(?:(?:please|can|could|you|simply)\s+)*(explain)(?!\s+(?:how|why)\b)\b",
    r"\b(summary|overview|outline)\s+of\b",
    r"^(?:(?:please|can|could|you)\s+)*(summari[sz]e)\b",
    r"\s((?:simply\s+)?explained(?:\s+simply)?)\s*[?.!]*$",
)
"""The same with the words that ask for a meaning.

"What does X mean" is "what is X" in other words, so it does not count as a longer question.
"""


def find_form_words(
    question: str, forms: Sequence[re.Pattern[str]] = FORMS
) -> list[tuple[int, int]]:
    """Return start and end (exclusive) of the phrases that name the form, in order.

    The result is empty if the question has no other terms.
    """
    found = {match.span(1) for form in forms for match in form.finditer(question)}
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans if extract_terms(blank_out(question, spans)) else []


def find_form_terms(question: str) -> frozenset[str]:
    """Return the terms of a question that occur only in the phrases that name the form."""
    spans = find_form_words(question)
    named = {term for start, end in spans for term in extract_terms(question[start:end])}
    return frozenset(named).difference(extract_terms(blank_out(question, spans)) if named else ())


def blank_out(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length with spaces in place of the given spans."""
    chars = list(text)
    for start, end in spans:
        chars[start:end] = " " * (end - start)
    return "".join(chars)
