"""Check if the sources that a written sentence cites contain its numbers, names, code and words.

A paraphrase must not be reported. Each check therefore accepts every notation, spelling and word
form that it knows, and leaves out what it cannot compare, such as the words of a translated answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.units import CODE_SPAN, DISPLAYED, INLINE_FORMULA
from rag_pipeline.answering.writing.citing import remove_citations
from rag_pipeline.answering.writing.known_text import KnownText
from rag_pipeline.answering.writing.numbers import find_numbers, unify_characters
from rag_pipeline.core.text.terms import STOP_WORDS, UNSPACED, extract_terms, extract_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.answering.models import Answer, AnswerSentence

ENOUGH_WORDS: Final = 0.3
"""Share of a sentence's content words that its sources must contain for it to be supported.

A paraphrase of a short source keeps as few as a third of the words.
"""

_FEWEST_WORDS: Final = 3  # a sentence with fewer content words may share none with its source
_SHOWN: Final = 5  # missing expressions named in one notice
_SHOWN_SENTENCES: Final = 2  # sentences named in notices about unrelated sources
_LONGEST_SHOWN: Final = 80  # characters of a sentence in a notice
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
class SentenceSupport:
    """A sentence that a model wrote, compared with the sources that it cites.

    Attributes:
        sentence: The sentence with its citations.
        missing: Numbers, names and code that none of its cited sources contains, as written.
        unrelated: Cited numbers whose source shares no word, number or name with the sentence.
        word_share: Share of the sentence's content words that its cited sources contain, 0 to 1.
            1 if the words cannot be compared, because the answer is in another language.
    """

    sentence: AnswerSentence
    missing: tuple[str, ...]
    unrelated: tuple[int, ...]
    word_share: float

    @property
    def supported(self) -> bool:
        """True if the cited sources contain the numbers, names, code and enough of the words."""
        related = bool(self.sentence.cited) and not self.unrelated
        return related and not self.missing and self.word_share >= ENOUGH_WORDS


def measure_support(answer: Answer) -> tuple[SentenceSupport, ...]:
    """Compare each sentence of an answer with the sources that it cites.

    Args:
        answer: An answer with sentences. Its sources are in `answer.grounding`.

    Returns:
        One record for each sentence, in the same order. A sentence that cites no source has no
        missing expressions and the word share 0.
    """
    known = {source.number: KnownText(source) for source in answer.grounding.sources}
    texts = [unify_characters(remove_citations(entry.text)) for entry in answer.sentences]
    comparable = _are_comparable(" ".join(texts), list(known.values()))
    capitals = comparable and not _has_many_capitals(" ".join(one.text for one in known.values()))
    ordinary = frozenset[str]().union(*(source.lower_words for source in known.values()))
    records = []
    for entry, text in zip(answer.sentences, texts, strict=True):
        cited = {number: known[number] for number in entry.cited if number in known}
        sources = list(cited.values())
        quoted = any(source.quotes(text) for source in sources)
        missing = () if quoted or not sources else _find_missing(text, sources, ordinary, capitals)
        words = [word for word in extract_words(text) if extract_terms(word) and word.isalpha()]
        found = [word for word in words if any(source.has_words([word]) for source in sources)]
        share = len(found) / len(words) if words and comparable else float(bool(sources))
        judged = comparable and not quoted and _says_enough(text, words)
        unrelated = [
            number
            for number, source in cited.items()
            if judged and not _shares(text, words, source)
        ]
        records.append(SentenceSupport(entry, missing, tuple(unrelated), share))
    return tuple(records)


def report_support(records: Sequence[SentenceSupport]) -> tuple[str, ...]:
    """Return notices about what the cited sources do not contain; empty if nothing is missing."""
    notices = []
    missing = list(dict.fromkeys(entry for record in records for entry in record.missing))
    if missing:
        rest = len(missing) - _SHOWN
        shown = ", ".join(missing[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        notices.append(f"The cited sources do not contain: {shown}.")
    unrelated = [(record, number) for record in records for number in record.unrelated]
    for record, number in unrelated[:_SHOWN_SENTENCES]:
        text = " ".join(remove_citations(record.sentence.text).split())
        text = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
        notices.append(f"Source {number} has no word in common with the sentence: {text}")
    return tuple(notices)


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
    prose = UNSPACED.sub(" ", _blank(text, (part.span() for part in _LITERAL.finditer(text))))
    prose = _blank(prose, (part.span() for part in _LABEL.finditer(prose)))
    measures = []
    for number in find_numbers(prose):
        unit = prose[number.end : number.unit_end]
        is_unit = len(unit) <= _LONGEST_UNIT or "/" in unit
        measures.append((number.start, number.unit_end if is_unit else number.end))
        if not any(source.numbers.contain(number) for source in sources):
            missing.append((number.start, number.text))
    prose = _blank(prose, measures)
    written_out = [
        run.span()
        for run in _NAME_RUN.finditer(prose)
        if any(_take_initials(run.group()) in source.words for source in sources)
    ]
    untitled = _blank(prose, [*written_out, *(part.span() for part in _TITLE.finditer(prose))])
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


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text of the same length with spaces in place of the given spans."""
    chars = list(text)
    for start, end in spans:
        chars[start:end] = " " * (end - start)
    return "".join(chars)


def _take_initials(name: str) -> str:
    return "".join(part[0] for part in re.findall(r"\w+", name)).casefold()


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


def _says_enough(text: str, words: Sequence[str]) -> bool:
    """Return True if a related source must share a word with the sentence.

    That is not so for a short sentence, and for one that only introduces what follows it.
    """
    return len(set(words)) >= _FEWEST_WORDS and not text.rstrip("*_ \n").endswith(":")


def _shares(text: str, words: Sequence[str], source: KnownText) -> bool:
    numbers = any(source.numbers.contain(number) for number in find_numbers(text))
    return (
        numbers
        or source.has_words(words)
        or any(map(source.has_name, filter(_has_name_shape, words)))
    )


def _are_comparable(answer: str, sources: Sequence[KnownText]) -> bool:
    """Return True if an answer and its sources are in the same language and have spaces."""
    if UNSPACED.search(answer):
        return False
    known = frozenset[str]().union(*(source.words for source in sources))
    written = [word for source in sources for word in extract_words(source.text)]
    said = [word.casefold() for word in extract_words(answer)]
    if _is_english(said) and _is_english(written):
        return True
    short = {word for word in said if len(word) <= _SHORT and word.isalpha()}
    return len(short & known) >= _SAME_LANGUAGE * len(short)


def _is_english(words: Sequence[str]) -> bool:
    return sum(word.casefold() in STOP_WORDS for word in words) >= _ENGLISH * len(words)


def _has_many_capitals(text: str) -> bool:
    words: list[str] = _AFTER_LOWER.findall(text)
    capitals = [word for word in words if word[:1].isupper()]
    return len(capitals) > _MANY_CAPITALS * max(1, len(words))
