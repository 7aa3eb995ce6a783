"""Find the sources that contain a written sentence: its numbers, names, code and words.

A paraphrase must be found. Each check therefore accepts every notation, spelling and word form that
it knows, and leaves out what it cannot compare, such as the words of a translated answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.tables import CODE_SPAN, DISPLAYED, INLINE_FORMULA
from rag_pipeline.answering.writing.cleaning import KnownText
from rag_pipeline.answering.writing.numbers import find_numbers, unify_characters
from rag_pipeline.core.text.form_words import blank_out
from rag_pipeline.core.text.terms import STOP_WORDS, UNSPACED, extract_terms, extract_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.answering.models import Source

ENOUGH_WORDS: Final = 0.6
"""Share of a sentence's content words that a source which contains it must have."""

_SHARED_TERMS: Final = 0.15  # the same for an answer in another language, which shares only terms
_FEWEST_NEW: Final = 0.5  # share of the words beyond those of the question
_NEAR: Final = 0.5  # share of the words that must stand in one place of each source
_GAIN: Final = 0.1  # by which several cited sources must contain more than one of them
_PARTICLES: Final = frozenset({"yes", "no", "ja", "nein", "oui", "non", "s\u00ed", "sim"})
_LONGEST_STUTTER: Final = 6  # words
_COMBINED: Final = 4  # sources that are tried together with the best one

_LONGEST_UNIT: Final = 4  # letters; a longer word after a number is not a unit but may be a name
_MANY_CAPITALS: Final = 0.2  # above this share, a language writes ordinary words with a capital
_ENGLISH: Final = 0.2  # share of stop words above which a text is taken for English
_SAME_LANGUAGE: Final = 0.5  # share of the short words of an answer that its sources contain
_SHORT: Final = 3  # letters; most words of this length are function words
_LITERALS: Final = frozenset({"true", "false", "none", "null"})

_LITERAL: Final = re.compile(
    r"(?P<fence>`{3,}|~{3,})[^\n]*(?P<block>(?:\n.*?)?)(?:(?P=fence)|\Z)"
    rf"|(?P<span>{CODE_SPAN})|(?P<formula>{DISPLAYED}|{INLINE_FORMULA})"
    r"|(?P<address>https?://[^\s<>\])]+)",
    re.DOTALL,
)
_LABEL: Final = re.compile(
    r"^[ \t>]*(?:[-*+][ ]+|#+[ ]+)?[*_]*(?:\d{1,3}[.)][ *_]|\w+[ ]\d{1,3}[*_ ]*[:.)-](?=[\s*_]|$))",
    re.MULTILINE,
)
"""A number that only counts the entries of a list, such as `2.` and `Step 2:`."""
_TITLE: Final = re.compile(r"(?:\*\*|__)[^*_\n]+(?:\*\*|__)|^[^.:\n]{1,60}:", re.MULTILINE)
"""A bold text, or a text before a colon. Its words may have capital letters without being names."""
_CLAUSE_START: Final = re.compile(r"(?:^|[.!?:;(|\n\"\u201c/]|-\s)[\s>*_#\"\u201c\u2018'(\[-]*$")
_WORD: Final = re.compile(r"[^\W_](?:\w*[^\W_])?")
_CODE_NAME: Final = re.compile(r"--[A-Za-z][\w-]+|[^\W\d](?:\w*[^\W_])?")
_NAME_RUN: Final = re.compile(r"(?:\b[A-Z]\w+[ -]){1,5}[A-Z]\w+")
_AFTER_LOWER: Final = re.compile(r"(?<=[a-z\u00df-\u00ff][ ])[^\W\d_]{2,}")
_LOOK_BACK: Final = 12  # characters before a word that tell if it begins a clause


@dataclass(frozen=True, slots=True)
class Attribution:
    """The sources that contain a written sentence, compared with those that it cites.

    Attributes:
        numbers: Numbers of the sources that contain the sentence; empty if none does.
        missing: Numbers, names and code that the nearest source does not contain, as written.
        is_claim: False for a sentence that says too little to be judged, such as "See here.".
        is_neutral: True for a sentence without content, such as "Yes.".
    """

    numbers: tuple[int, ...]
    missing: tuple[str, ...] = ()
    is_claim: bool = True
    is_neutral: bool = False


class Attributor:
    """Finds the source in which a written sentence stands.

    Args:
        sources: The sources of the answer.
        question: The question. Its words are not evidence for an answer.
    """

    def __init__(self, sources: Sequence[Source], question: str) -> None:
        self.known = {source.number: KnownText(source) for source in sources}
        texts = list(self.known.values())
        self._asked = frozenset(extract_terms(question))
        self._written = _Written()
        self._ordinary = frozenset[str]().union(*(one.lower_words for one in texts))
        self._words = frozenset[str]().union(*(one.words for one in texts))
        text = " ".join(one.text for one in texts)
        after_lower: list[str] = _AFTER_LOWER.findall(text)
        capitals = sum(word[:1].isupper() for word in after_lower)
        # A capital letter inside a sentence marks a name, unless too many words have one.
        self._has_names = capitals <= _MANY_CAPITALS * max(1, len(after_lower))
        words = extract_words(text)
        stop_count = sum(word.casefold() in STOP_WORDS for word in words)
        self._is_english = _is_english(stop_count, len(words))

    def contains(self, text: str) -> bool:
        """Return True if the words of a text stand in a source one after the other."""
        plain = unify_characters(text)
        return any(source.quotes(plain) or source.has_code(plain) for source in self.known.values())

    def attribute(self, text: str, cited: Sequence[int]) -> Attribution:
        """Return the sources that contain a sentence.

        A source contains a sentence if it has its numbers, names and code and most of its content
        words. If no source has all of them, two can do so together.

        Args:
            text: The sentence without citations.
            cited: The sources that the model named. They come first if several contain the
                sentence. An answer in another language than the sources cannot be compared word by
                word; it needs their numbers, names and code, and the model's citation.
        """
        text = unify_characters(text)
        self._written.add(text)
        plain = extract_words(_LABEL.sub(" ", text))
        words = [word for word in plain if extract_terms(word) and word.isalpha()]
        comparable = self._written.is_comparable(self._words, is_english=self._is_english)
        named = [number for number in dict.fromkeys(cited) if number in self.known]
        scores = {number: self._score([number], text, words, comparable) for number in self.known}
        is_claim = bool(words or any(find_numbers(text)) or _LITERAL.search(text))
        if not is_claim or text.casefold().strip(" .!,") in _PARTICLES:
            return Attribution((), (), is_claim=False, is_neutral=True)
        best = sorted(self.known, key=lambda number: (-scores[number][0], number))
        enough = ENOUGH_WORDS if comparable else _SHARED_TERMS
        fitting = [number for number in best if scores[number][0] >= enough]
        kept = tuple(number for number in named if scores[number][0] >= enough)
        together = self._score(named, text, words, comparable)[0] if len(named) > 1 else 0.0
        if together >= max([enough, *(scores[number][0] + _GAIN for number in named)]):
            return Attribution(tuple(named))
        if not comparable:
            kept = kept or tuple(number for number in named if not scores[number][1])
        found = kept or tuple(fitting[:1])
        if _stutters(text) and not self.contains(text):
            return Attribution(())
        if found:
            is_contrary = all(self.known[number].contradicts(text) for number in found)
            return Attribution(() if is_contrary else found)
        for pair in ((best[0], other) for other in best[1:_COMBINED]):
            if self._score(pair, text, words, comparable)[0] >= enough:
                return Attribution(pair)
        missing = scores[best[0]][1] if best else ()
        return Attribution((), missing, is_claim=len(words) > 1 or bool(missing))

    def _score(
        self,
        numbers: Sequence[int],
        text: str,
        words: Sequence[str],
        comparable: bool,  # noqa: FBT001  # a private function with one caller
    ) -> tuple[float, tuple[str, ...]]:
        """Return the share of the content words that sources contain, and what they lack.

        The share is 0 if a number, a name or code is missing. A number counts like a word. A model
        repeats the words of the question in any answer, so the share is also 0 if most of the other
        words are missing, or if fewer than half of all words stand in one place.
        """
        sources = [self.known[number] for number in numbers]
        if any(source.quotes(text) or source.has_code(text) for source in sources):
            return 1.0, ()
        capitals = comparable and self._has_names
        missing = _find_missing(text, sources, self._ordinary, capitals)
        if missing:
            return 0.0, missing
        if not words:
            return 1.0, ()
        number_count = len({number.text for number in find_numbers(_LABEL.sub(" ", text))})
        found = {word for word in words if any(source.has_words([word]) for source in sources)}
        asked = {word for word in words if not self._asked.isdisjoint(extract_terms(word))}
        new, new_found = set(words) - asked, found - asked
        if len(new_found) + number_count < _FEWEST_NEW * len(new):
            return 0.0, ()
        near: set[str] = set()
        for source in sources:
            near |= source.gather(found - near)
        if comparable and len(near) < _NEAR * len(set(words)):
            return 0.0, ()
        total = len(found | new) + number_count
        return (len(found) + number_count) / total if total else 0.0, ()


def _hide_literals(text: str) -> str:
    """Return a text with spaces in place of code, formulas, and scripts without spaces."""
    return UNSPACED.sub(" ", blank_out(text, (part.span() for part in _LITERAL.finditer(text))))


def _stutters(text: str) -> bool:
    """Return True if two or more words of prose directly follow themselves, as in "a b a b"."""
    prose = _hide_literals(text)
    words = [word.casefold() for word in extract_words(prose)]
    return any(
        words[start : start + length] == words[start + length : start + 2 * length]
        for length in range(2, _LONGEST_STUTTER + 1)
        for start in range(len(words) - 2 * length + 1)
    )


def _find_missing(
    text: str,
    sources: Sequence[KnownText],
    ordinary: frozenset[str],
    capitals: bool,  # noqa: FBT001  # a private function with one caller
) -> tuple[str, ...]:
    """Return the numbers, names and code of a sentence that no source contains, in text order.

    Args:
        text: The sentence without citations.
        sources: The sources that the sentence cites.
        ordinary: Words that are not names, in lower case.
        capitals: True if a capital letter inside a sentence marks a name.
    """
    missing: list[tuple[int, str]] = []
    for part in _LITERAL.finditer(text):
        missing += [(part.start(), shown) for shown in _check_literal(part, sources)]
    prose = _hide_literals(text)
    prose = blank_out(prose, (part.span() for part in _LABEL.finditer(prose)))
    measures = []
    for number in find_numbers(prose):
        unit = prose[number.end : number.unit_end]
        is_unit = len(unit) <= _LONGEST_UNIT or "/" in unit
        measures.append((number.start, number.unit_end if is_unit else number.end))
        if not any(source.numbers.contain(number) for source in sources):
            missing.append((number.start, number.text))
    prose = blank_out(prose, measures)
    written_out = [
        run.span()
        for run in _NAME_RUN.finditer(prose)
        if any(_take_initials(run.group()) in source.words for source in sources)
    ]
    untitled = blank_out(prose, [*written_out, *(part.span() for part in _TITLE.finditer(prose))])
    ordinary = ordinary.union(word for word in extract_words(prose) if word.islower())
    for match in _WORD.finditer(prose):
        word, start = match.group(), match.start()
        if not _may_be_name(word):
            continue
        emphasized = word.isalpha() and word.isupper() and len(word) >= _LONGEST_UNIT
        if emphasized or not _has_name_shape(word):
            begins = _CLAUSE_START.search(prose[max(0, start - _LOOK_BACK) : start])
            if not capitals or begins or untitled[start] == " " or word.lower() in ordinary:
                continue
        if not any(source.has_name(word) for source in sources):
            missing.append((start, word))
    return tuple(dict.fromkeys(shown for _, shown in sorted(missing)))


def _take_initials(name: str) -> str:
    return "".join(re.findall(r"\b\w", name)).casefold()


def _check_literal(part: re.Match[str], sources: Sequence[KnownText]) -> Iterator[str]:
    """Yield what no source contains of a code block, code span, formula or address."""
    address, formula, span = part.group("address"), part.group("formula"), part.group("span")
    if address is not None:
        address = address.rstrip(".,;:!?'\"*_")
        if not any(source.has_code(address) for source in sources):
            yield address
    elif formula is not None:
        # The small numbers of a formula change when it is rearranged.
        yield from _check_numbers(formula, sources, fewest_digits=2)
    else:
        lines = (part.group("block") or "").splitlines() if span is None else [span.strip("` ")]
        for line in lines:
            if any(source.has_code(line) for source in sources):
                continue
            yield from _check_numbers(line, sources, fewest_digits=1 if span else 2)
            for match in _CODE_NAME.finditer(re.sub(r"<[^<>]*>", " ", line)):
                name = match.group()
                named = span is not None or name.startswith("--") or _has_name_shape(name)
                if not named or len(name) < 2 or name.lower() in _LITERALS:
                    continue
                if not any(source.has_identifier(name) for source in sources):
                    yield f"`{name}`"


def _check_numbers(text: str, sources: Sequence[KnownText], *, fewest_digits: int) -> Iterator[str]:
    for number in find_numbers(text):
        long_enough = sum(char.isdigit() for char in number.text) >= fewest_digits
        if long_enough and not any(source.numbers.contain(number) for source in sources):
            yield number.text


def _may_be_name(word: str) -> bool:
    if len(word) < 2 or word[0].isdigit() or word.lower() in STOP_WORDS:
        return False
    return word[0].isupper() or _has_name_shape(word)


def _has_name_shape(word: str) -> bool:
    """Return True if a capital letter, a digit or an underscore is inside the word."""
    return any(char.isupper() or char.isdigit() or char == "_" for char in word[1:])


class _Written:
    """The words of an answer so far, counted to tell its language."""

    def __init__(self) -> None:
        self.is_unspaced = False
        self.stop_count = self.word_count = 0
        self.short: set[str] = set()

    def add(self, text: str) -> None:
        """Count the words of a sentence."""
        words = [word.casefold() for word in extract_words(text)]
        self.is_unspaced = self.is_unspaced or UNSPACED.search(text) is not None
        self.stop_count += sum(word in STOP_WORDS for word in words)
        self.word_count += len(words)
        self.short.update(word for word in words if len(word) <= _SHORT and word.isalpha())

    def is_comparable(self, words: frozenset[str], *, is_english: bool) -> bool:
        """Return True if the answer is in the language of the sources and has spaces."""
        if self.is_unspaced:
            return False
        if is_english and _is_english(self.stop_count, self.word_count):
            return True
        return len(self.short & words) >= _SAME_LANGUAGE * len(self.short)


def _is_english(stop_count: int, word_count: int) -> bool:
    return stop_count >= _ENGLISH * word_count
