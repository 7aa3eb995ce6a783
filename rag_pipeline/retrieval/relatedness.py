"""Judge whether a selected text may answer a question.

Two things can relate a question to a selection: common words, and a similar meaning, which the
local embedding model measures. A question such as "explain this" names no subject; it
points at the selection and is always related to it.

This module imports only core, so that it cannot reach a store, a search or a service.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import STOP_WORDS, UNSPACED, extract_terms, extract_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.protocols import Embedder

RELATED_LIKENESS: Final = 0.32
"""Least cosine of question and sentence at which the selection seems to answer."""

POSSIBLE_LIKENESS: Final = 0.26
"""Least cosine at which a selection may answer. Both bounds hold for the model `TEXTBOOK` only."""

_MAX_SENTENCES: Final = 64  # compared by meaning; a page has more, and each takes about 3 ms
_MAX_SENTENCE_CHARS: Final = 1_000  # about the input limit of the local model
_MIN_SHARED_PREFIX: Final = 5  # characters; `random` and `randomizer` count as the same term
_COUNTED_AS: Final = {"DIGIT": "LATIN", "HIRAGANA": "CJK", "KATAKANA": "CJK"}  # scripts

_DEMONSTRATIVES: Final = frozenset({"this", "that", "these", "those"})
_POINTERS: Final = _DEMONSTRATIVES | {
    "it", "its", "they", "them", "both", "here", "above", "below",
}  # fmt: skip
_SKIPPED: Final = frozenset({
    "first", "second", "third", "last", "next", "whole", "main", "key", "one", "ones",
})  # fmt: skip
_MARKS_PART: Final = _DEMONSTRATIVES | {"the", "selected"}
_REWRITING: Final = frozenset({
    "explain", "describe", "summarize", "summarise", "simplify", "clarify", "rephrase", "translate",
    "understand", "put", "make",
})  # fmt: skip
_REQUESTS: Final = _REWRITING | {
    "mean", "meant", "meaning", "say", "tell", "give", "show", "elaborate",
}  # fmt: skip
_POLITE: Final = frozenset({"please", "can", "could", "would", "you"})
_FORM_PREPOSITIONS: Final = frozenset({"in", "to", "into", "for", "like", "as", "with"})
_LISTENERS: Final = frozenset({"me", "us"})
_MAX_FORM_WORDS: Final = 2  # as in "in simple terms" or "to plain english"
_PARTS: Final = frozenset({
    "selection", "selected", "passage", "text", "paragraph", "section", "sentence", "word", "line",
    "code", "table", "formula", "list", "step", "example", "point", "takeaway",
})  # fmt: skip
"""Names of a text and its parts, singular."""


class SelectionVerdict(StrEnum):
    """How a selected text is related to a question.

    `ANSWERS`: the question is about the selection. `MAY_NOT_ANSWER`: the question could be about
    the selection or about something near to it. `UNRELATED`: it is about something else.
    """

    ANSWERS = "answers"
    MAY_NOT_ANSWER = "may_not_answer"
    UNRELATED = "unrelated"


_ANSWERS: Final = SelectionVerdict.ANSWERS
_MAY_NOT_ANSWER: Final = SelectionVerdict.MAY_NOT_ANSWER
_UNRELATED: Final = SelectionVerdict.UNRELATED


def judge_selection(
    question: str, selection: str, threshold: float, embedder: Embedder | None = None
) -> tuple[SelectionVerdict, float]:
    """Return how a selection is related to a question, and how closely, from 0 to 1.

    The words are compared first. The share of the question's terms that occur in the selection is
    weighted by length, because long words are rarer. From `threshold` on they decide. Otherwise the
    meaning decides if there is an embedder. If there is none, one common word makes it possible
    that the selection answers.

    Function words are known only for English, and the model reads only the Latin script. A question
    that shares no Latin script with the selection is therefore never judged as unrelated.

    Args:
        question: The question of the user.
        selection: The selected text.
        threshold: The least share of common terms, 0 to 1, of a question about the selection.
        embedder: The local model `textbook`, whose scale the bounds in this module hold for. None
            compares only words.
    """
    selected = _Terms(selection)
    if points_at_selection(question, selected):
        return _ANSWERS, 1.0
    asked = {unit for word in _own_words(question) for unit in extract_units(word)}
    comparable = {term for term in asked if _name_script(term) in selected.scripts}
    total = sum(map(len, comparable))
    share = sum(len(term) for term in comparable if term in selected) / max(1, total)
    enough = bool(comparable) and share >= threshold
    if not any(_name_script(term) == "LATIN" for term in comparable):
        return (_ANSWERS if enough else _MAY_NOT_ANSWER), share
    if embedder is None:
        return (_ANSWERS if enough else _MAY_NOT_ANSWER if share else _UNRELATED), share
    likeness = _compare_meaning(question, selection, embedder)
    possible = likeness >= POSSIBLE_LIKENESS
    verdict = _UNRELATED
    if likeness >= RELATED_LIKENESS or (enough and possible):
        verdict = _ANSWERS
    elif enough or possible:
        verdict = _MAY_NOT_ANSWER
    return verdict, max(share, min(1.0, likeness))


def points_at_selection(question: str, selected: _Terms) -> bool:
    """Return True if a question names no subject, such as "Why?" or "Explain this".

    That is the case if it asks for the text to be explained or rewritten ("put this in ...", or
    "translate to ..."), or if all its content words occur in the selection. So it is if one word
    does not, but the question also refers to the selection ("Is this correct?"). Words that choose
    something of a list, as in "the second one", do not count.
    """
    words = [word.lower() for word in extract_words(question)]
    if _requests_form(words) or any(_requests_rewriting(words[at:]) for at in range(len(words))):
        return True
    named = (word for word in _own_words(question) if word.lower() not in _SKIPPED)
    own = {word for word in named if not selected.holds(word)}
    last = words[-1] if words else ""
    counted = [word for word in words if word not in _SKIPPED]
    refers = any(
        word in _POINTERS or (earlier in _MARKS_PART and (_is_part(word) or word == last == "two"))
        for earlier, word in zip(["", *counted], counted, strict=False)
    )
    return len(own) <= (1 if refers else 0)


def extract_units(text: str) -> list[str]:
    """Return the terms of a text in order, with repeats.

    A term in a script without spaces, such as Chinese, is split into its overlapping pairs of
    characters, which come close to words.
    """
    return [
        unit
        for term in extract_terms(text)
        for unit in (
            [term[at : at + 2] for at in range(max(1, len(term) - 1))]
            if UNSPACED.search(term)
            else [term]
        )
    ]


class _Terms:
    """The terms of a selection, and the scripts in which they are written."""

    def __init__(self, text: str) -> None:
        self._terms = set(extract_units(text))
        self.scripts = {_name_script(term) for term in self._terms}
        self._by_prefix: defaultdict[str, list[str]] = defaultdict(list)
        for term in self._terms:
            self._by_prefix[term[:_MIN_SHARED_PREFIX]].append(term)

    def __contains__(self, term: str) -> bool:
        if term in self._terms:
            return True
        return len(term) >= _MIN_SHARED_PREFIX and any(
            other.startswith(term) or term.startswith(other)
            for other in self._by_prefix[term[:_MIN_SHARED_PREFIX]]
            if len(other) >= _MIN_SHARED_PREFIX
        )

    def holds(self, word: str) -> bool:
        return all(unit in self for unit in extract_units(word))


def _own_words(question: str) -> Iterator[str]:
    """Yield the words of a question that say what it is about.

    Left out are function words, words of reading, the noun after `this` or `these`, and `the two`.
    """
    before = ""
    for word in extract_words(question):
        lower = word.lower()
        named = before in {"this", "these"} or (before, lower) == ("the", "two")
        before = lower
        closed = lower in STOP_WORDS or lower in _POINTERS or lower in _REQUESTS or _is_part(lower)
        if not (named or closed):
            yield word


def _is_part(word: str) -> bool:
    return word in _PARTS or word.removesuffix("s") in _PARTS


def _requests_form(words: list[str]) -> bool:
    """Return True for a request that names only a form, such as "explain in simple terms"."""
    asked = [word for word in words if word not in _POLITE]
    if len(asked) < 3 or asked[0] not in _REWRITING or asked[1] not in _FORM_PREPOSITIONS:
        return False
    own = [word for word in asked[2:] if word not in STOP_WORDS and not _is_part(word)]
    return asked[2] not in _LISTENERS and len(own) <= _MAX_FORM_WORDS


def _requests_rewriting(words: list[str]) -> bool:
    """Return True if words begin with a verb of reading whose object is the text: "put this".

    Only function words may stand between the verb and its object: "explain to me what this".
    """
    if words[0] not in _REWRITING:
        return False
    for word in words[1:]:
        if word in _POINTERS or _is_part(word):
            return True
        if word not in STOP_WORDS:
            return False
    return False


def _name_script(term: str) -> str:
    script = unicodedata.name(term[0], "").split(" ")[0]
    return _COUNTED_AS.get(script, script)


def _compare_meaning(question: str, selection: str, embedder: Embedder) -> float:
    """Return the highest cosine of a question with a sentence of the selection.

    Of a long selection, the sentences with the most terms of the question are compared.
    """
    spans = split_sentences(selection)
    sentences = [selection[start:end][:_MAX_SENTENCE_CHARS] for start, end in spans]
    if len(sentences) > _MAX_SENTENCES:
        asked = set(extract_terms(question))
        sentences.sort(key=lambda sentence: -len(asked.intersection(extract_terms(sentence))))
        del sentences[_MAX_SENTENCES:]
    rows, _ = embedder.embed_passages(sentences)
    return float((rows @ embedder.embed_query(question)).max())
