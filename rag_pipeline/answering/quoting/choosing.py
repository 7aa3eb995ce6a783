"""Choose the passages of the sources that answer a question without a chat model.

One main passage answers the question. At most two further passages are added, if they contain
something that the question asks for and the main passage lacks, or if they are almost as good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import read_asked_fact
from rag_pipeline.answering.quoting.passages import (
    Part,
    ends_sentence,
    find_parts,
    refers_back,
    skip_marks,
)
from rag_pipeline.answering.reading.book_questions import names_book
from rag_pipeline.answering.reading.questions import (
    TROUBLE,
    QuestionKind,
    ReadQuestion,
    read_question,
)
from rag_pipeline.core.models import ContentType, TextBlockKind
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import extract_terms, find_distinct_terms
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.answering.models import Source


_HEADED: Final = 1.0  # below a heading that is the term, and begins with it too
_ENTRY: Final = 0.9  # begins with the term, as an entry of a glossary does
BELOW: Final = 0.85
"""Degree of the text directly below a heading that is the term."""

_TITLED: Final = 0.8  # below a heading with the term before a colon, and says something about it
_IN_ROW: Final = 0.8
_SENTENCE: Final = 0.6
_NAMED: Final = 0.95  # times the degree to which a text defines the name without its kind
_SUBJECT: Final = 0.5  # opens a section about the term, and is about it

_WORD: Final = re.compile(r"[^\W_]+(?:\+\+|#)?")
_BRACKETS: Final = re.compile(r"\(([^()]*)\)")
_SHORT: Final = re.compile(r"(?<=\s)\(([^()]*)\)")  # without a blank before, it is a call
_NUMBERED: Final = re.compile(r"^([^:]*\d):\s")
_AFTER_COLON: Final = re.compile(r":\s.*")
_LABELLED: Final = re.compile(r"(?:\*\*|__)[^*_\n]+(?:(?:\*\*|__)\s?:|:(?:\*\*|__))")
_ADDED: Final = re.compile(
    r"^(?:introduction\s+to|overview\s+of)\s|\s(?:\d[\d.]*|overview|introduction|basics)$",
    re.IGNORECASE,
)
"""Words of a heading that say nothing about its subject, and the number of a version."""
_SAYS: Final = (
    r"(?:(?:is|are|was|were)\s+(?:an?|the|any|what|how|when|one|called|defined)\b"
    r"|means?\b|refers?\s+to\b|denotes?\b|stands?\s+for\b|describes?\b)"
)


def measure_definition(part: Part, subject: str) -> float:
    """Return how clearly a part of a source defines a term, from 0 (not at all) to 1.

    The clearest definition is the text directly below a heading that is the term, if the text
    begins with the term too. Then follow an entry such as "X is a ..." or "X: ...", any other text
    below such a heading, a text below a heading such as "X: ..." that begins with the term, a row
    of a table that begins with it, a defining sentence, and a text directly below headings with
    the term that says something about it.
    """
    if TextBlockKind.CODE in part.kinds and not ends_sentence(part.text[: part.introduction]):
        return 0.0
    begins, about, entry, row, sentence = _compile(subject)
    text = skip_marks(part.text)
    headings = part.source.headings
    above = find_distinct_terms(" ".join(headings))
    heading = headings[-1] if headings and part.opens and not part.labelled else ""
    headed, titled = (_is_named(name, subject) for name in (heading, _AFTER_COLON.sub("", heading)))
    defined = sentence.search(part.text) is not None
    says = defined or begins.match(text)
    degrees = (
        (_HEADED, headed and says),
        (_ENTRY, entry.match(text)),
        (BELOW, headed),
        (_TITLED, titled and says),
        (_IN_ROW, TextBlockKind.TABLE in part.kinds and row.search(part.text)),
        (_SENTENCE, defined),
        (
            _SUBJECT,
            part.opens and about.match(text) and set() < find_distinct_terms(subject) <= above,
        ),
    )
    return next((degree for degree, holds in degrees if holds), 0.0)


def is_defined_by(sentence: str, subject: str) -> bool:
    """Return True if a sentence says what a term is, such as "X is a ..."."""
    _, _, entry, _, defining = _compile(subject)
    return bool(entry.match(skip_marks(sentence)) or defining.search(sentence))


def is_introduced_by(text: str, subject: str) -> bool:
    """Return True if a sentence of a text says what a term means in general.

    "A node is a ..." and "Nav2 is the ..." do. "The node is the ..." speaks of one certain node.
    """
    *_, sentence = _compile(subject)
    return any(found["one"] is None for found in sentence.finditer(text))


def _is_named(heading: str, subject: str) -> bool:
    """Return True if a heading is the subject, apart from stop words, word forms and brackets.

    `Intersection over union (IoU)` is named by each of its two names and by both together, and
    `Spanning tree protocol (STP)` by `STP protocol` too. `Module 2: Sensors` is named by the words
    before the colon. Words such as "overview" and a number at the end, such as that of a version,
    may be missing from the subject.
    """
    short = _SHORT.findall(heading)
    names = [heading, _BRACKETS.sub(" ", heading), *short]
    names += _NUMBERED.findall(heading)
    names += [_ADDED.sub("", name) for name in names]
    asked = [subject, _BRACKETS.sub(" ", subject), *_BRACKETS.findall(subject)]
    terms = {tuple(extract_terms(name)) for name in asked} - {()}
    whole = find_distinct_terms(heading)
    return any(tuple(extract_terms(name)) in terms for name in names) or any(
        set() < find_distinct_terms(name) <= set(words) <= whole
        for name in short
        for words in terms
    )


def list_names(subject: str, weights: Mapping[str, float]) -> tuple[str, ...]:
    """Return a term whose meaning is asked, and its name without a word for its kind.

    The last word says the kind if it is more common in the book than the words before it, such as
    `sensor` in "IMU sensor".
    """
    *name, kind = subject.split() or [""]
    before, after = (
        max((weights.get(term, 1.0) for term in extract_terms(text)), default=0.0)
        for text in (" ".join(name), kind)
    )
    return (subject, " ".join(name)) if kind.isalpha() and before > after > 0 else (subject,)


@lru_cache(maxsize=64)
def _compile(subject: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a beginning, a subject, an entry, a row and a defining sentence."""
    words = _WORD.findall(_BRACKETS.sub(" ", subject)) or _WORD.findall(subject)
    term = r"[\W_]{0,3}".join(map(re.escape, words)) + r"(?:e?s)?(?:\s?\d[\d.]*)?"
    # Each repetition has a small bound or is possessive, so that no text takes quadratic time.
    marks = r"[*_`]{0,3}"
    alone = rf"{term}(?![\w+#])(?:{marks}\s?\([^()\n]{{1,60}}\))?"
    short = rf"(?:[^\n.:|]{{1,60}}\(\s?{term}\s?\)|{alone})"
    entry = rf"{short}{marks}\s?(?:[:|\u2013\u2014]|-\s|,\s+(?:also|or)\b|{_SAYS})"
    sentence = rf"(?:^\s?|[.!?:;]\s)(?:an?\s|(?P<one>the\s))?{marks}{short}{marks}\s{_SAYS}"
    row = rf"^[ \t>]*+\|?[ \t]*+{marks}{short}{marks}[ \t]*+\|"
    begins = rf"(?:an?\s|the\s)?{marks}{short}"
    about = rf"{begins}{marks}\s(?!\w+n['\u2019]t\b|\w+\s+not\b)\w"
    flags = re.IGNORECASE | re.MULTILINE
    return tuple(re.compile(pattern, flags) for pattern in (begins, about, entry, row, sentence))


_LEAST_ITEMS: Final = 3


def lists_things(part: Part, things: str, worth: Mapping[str, float]) -> bool:
    """Return True if a part lists things of a kind.

    This is a table whose first column has their name as its title, or a list of at least three
    items that is introduced by their name in the plural, or below a heading that names nothing
    else. Words with the same stem are other things: a text about grasping lists no grasps.

    Args:
        part: A part of a source.
        things: The name of the things, such as `sensors`.
        worth: The share of each term of the question.
    """
    *before, name = _WORD.findall(things.lower())
    around = part.terms | find_distinct_terms(" ".join(part.source.headings))
    if part.lists_pages or not find_distinct_terms(" ".join(before)) <= around:
        return False
    forms = {name, re.sub(r"s$", "", re.sub(r"ies$", "y", name))}
    rows = _ROW.findall(part.text) if TextBlockKind.TABLE in part.kinds else []
    if rows and not forms.isdisjoint(_WORD.findall(_CELL_END.split(rows[0])[0].lower())):
        return True
    if TextBlockKind.LIST not in part.kinds or part.items < _LEAST_ITEMS:
        return False
    heading = " ".join(part.source.headings[-1:])
    is_headed = find_distinct_terms(heading) <= worth.keys()
    before_list = part.text[: part.introduction] + (heading if is_headed else "")
    return name in _WORD.findall(before_list.lower())


_TROUBLES: Final = re.compile(
    r"\b(?:troubles?|troubleshoot\w*|problems?|first\s+aid|symptoms?|mistakes|pitfalls|issues|faq"
    r"|frequently\s+asked|debugging|error\s+messages?|common\s+errors)\b",
    re.IGNORECASE,
)
_TROUBLE: Final = re.compile(TROUBLE, re.IGNORECASE)
_ASKS_TROUBLE: Final = re.compile(rf"{_TROUBLES.pattern}|\berrors?\b|\bdebug\b", re.IGNORECASE)


def explains_trouble(part: Part, worth: Mapping[str, float]) -> float:
    """Return how clearly a part is about a state that nobody wants, and that a question reports.

    It is at least half if a heading, or the first row of a table, says that the text is about
    troubles. Otherwise the last heading or a sentence must say that something does not work, and
    the share of the question there counts, in a sentence half of it.
    """
    table = part.text if TextBlockKind.TABLE in part.kinds else ""
    headings = "\n".join(part.source.headings)
    named = f"{headings}\n{_ROW.findall(table)[0] if table else ''}"
    if _TROUBLES.search(named):
        share = find_share(worth, part.terms | find_distinct_terms(headings))
        return (1 + share) / 2 if share else 0.0
    texts = [(heading, 1.0) for heading in part.source.headings[-1:]]
    for line in filter(_TROUBLE.search, part.text.splitlines()):
        texts += [(line[start:end], 0.5) for start, end in split_sentences(line)]
    told = [(text, counts) for text, counts in texts if _TROUBLE.search(text)]
    degrees = (counts * find_share(worth, find_distinct_terms(text)) for text, counts in told)
    return max(degrees, default=0.0)


_LEAST_SHARE: Final = 0.5  # share of the question that the names of the things must cover
_ROW: Final = re.compile(r"^[ \t>]*+\|(.*)$", re.MULTILINE)
_ITEM: Final = re.compile(
    r"^[ \t>]*+(?:[-*+]|\d{1,3}[.)])[ \t]++((?:\S++[ \t]?){1,4})", re.MULTILINE
)
_CELL_END: Final = re.compile(r"(?<!\\)\|")


def compares_things(
    part: Part, worth: Mapping[str, float], sides: Sequence[AbstractSet[str]] = ()
) -> bool:
    """Return True if a part has a place for each of the things that are compared.

    Two cells of the first row of a table, or two cells of its first column, each name something of
    the question that the other does not name. So do the beginnings of two items of a list.

    Args:
        part: A part of a source.
        worth: The share of each term of the question.
        sides: The terms that only the one and only the other thing has, if they are known.
    """
    if TextBlockKind.LIST in part.kinds:
        items = _ITEM.findall(part.text)
        named = [item for item in items if worth.keys() & extract_terms(item)[:1]]
        return _name_two(named, worth, sides)
    if TextBlockKind.TABLE not in part.kinds:
        return False
    rows = [_CELL_END.split(row) for row in _ROW.findall(part.text)]
    if not rows:
        return False
    return any(_name_two(cells, worth, sides) for cells in (rows[0], [row[0] for row in rows[1:]]))


def find_sides(question: str) -> tuple[frozenset[str], ...]:
    """Return the terms that only one of two compared things has; empty if that is not clear."""
    from rag_pipeline.retrieval.search import split_question  # noqa: PLC0415  # loads numpy

    named = [find_distinct_terms(part) for part in split_question(question)]
    sides = tuple(one.difference(*(other for other in named if other is not one)) for one in named)
    return sides if len(sides) == 2 and all(sides) else ()


def _name_two(
    cells: list[str], worth: Mapping[str, float], sides: Sequence[AbstractSet[str]]
) -> bool:
    named = [worth.keys() & find_distinct_terms(cell) for cell in cells]
    if sides:
        of_sides = [[not terms.isdisjoint(side) for side in sides] for terms in named]
        if not ([True, False] in of_sides and [False, True] in of_sides):
            return False
    return any(
        first - second and second - first and find_share(worth, first | second) >= _LEAST_SHARE
        for first, second in combinations(filter(None, named), 2)
    )


RANK_STEP: Final = 0.1
"""Value that the parts of a source lose for each better source."""

SUB_RANK_STEP: Final = 0.03
"""The same for a sub-question. It is smaller, because the rank is that of the whole question."""

# The value of a part is the score of its source relative to the best source, less the steps above,
# plus the following. They were chosen on one half of the golden set (ADR 28).
_COVER: Final = 0.3  # times the covered share of the question, without and with the headings
_DEFINITION: Final = 2.35  # times the degree to which the part defines the term
_CODE: Final = 0.5  # code or a formula, for a question that asks for it
_STEPS: Final = 0.4  # code, a list or a formula, for a how-to question
_COMPARISON: Final = 1.0  # a table with a column or row for each of the compared things
_LISTING: Final = 1.0  # a list or table of the things that a question asks for
_TROUBLING: Final = 0.8  # times the degree to which the part is about the reported problem
_TROUBLED: Final = -0.2  # below a heading such as "Common mistakes", if none are asked
_FACT: Final = 0.25  # a sentence with the kind of fact that a question asks for
_GENERAL: Final = 0.25  # a page at the top of the book or its beginning, if the book is meant
_UNFIT_CODE: Final = -0.3  # code for a question about a meaning, code without an introduction
_WEAK: Final = -1.0  # the part asks the reader a question, or the reader has it already
_PAGES: Final = -0.5  # the part lists pages, or says what they contain
_LATER: Final = re.compile(r"[\s>]*(?:[2-9]|\d\d)[.)]\s")
_NUMBER: Final = re.compile(r"[\s>]*\d{1,3}[.)]\s")


@dataclass(frozen=True, slots=True)
class ValuedPart:
    """A part of a source with its value for a question.

    Attributes:
        part: The part.
        value: How well the part answers the question; comparable within one question only.
        plain_value: The value without the points for the form, such as code or a table. Two parts
            of different forms are compared by it.
        reasons: Reasons for the value, as short texts for a reader.
        is_weak: True if the part asks the reader a question, or if the reader knows it already.
            Such a part is quoted only if there is no other.
        headed: What the part gains for a sub-question by a nearest heading that names it.
        is_entry: True if the part defines the subject of the question and is an item of a list, or
            begins with a bold label.
    """

    part: Part
    value: float
    plain_value: float
    reasons: tuple[str, ...]
    is_weak: bool
    headed: float
    is_entry: bool


def value_parts(
    question: str,
    sources: Sequence[Source],
    parts: Mapping[int, Sequence[Part]],
    weights: Mapping[str, float],
    rank_step: float,
    seen: str = "",
) -> list[ValuedPart]:
    """Return all parts of the sources with their values for a question, the best part first.

    The rank and the score of a source count most, because they compare meanings. Then follow the
    share of the question's terms that a part contains, and the form that the question asks for. A
    definition counts more than all of these; after the first five sources, only a clear one does.
    Quiz questions, lists of pages and code without an introduction lose value, but are chosen if
    nothing else is there.

    Args:
        question: The question of the user, or a sub-question of it.
        sources: Sources, best first.
        parts: The parts of each source, by the number of the source.
        weights: Weight of each term of the question.
        rank_step: Value that the parts of a source lose for each better source.
        seen: Text that the reader knows already.
    """
    asked, tells = read_question(question), read_asked_fact(question)
    worth = share_out(question, weights)
    defines = asked.kind is QuestionKind.DEFINITION
    names = list_names(asked.subject, weights)
    asks_trouble = asked.kind is QuestionKind.PROBLEM or _ASKS_TROUBLE.search(question) is not None
    sides = find_sides(question) if asked.kind is QuestionKind.COMPARISON else ()
    about_book = names_book(question)
    step = SUB_RANK_STEP if about_book else rank_step
    valued: list[ValuedPart] = []
    for better, source in enumerate(sources):
        headings = find_distinct_terms(" ".join(source.headings))
        last = find_distinct_terms(" ".join(source.headings[-1:]))
        headed = _COVER * find_share(worth, last)
        # A heading may name the thing that has a problem, but only the text tells what to do.
        named = frozenset() if asked.kind is QuestionKind.PROBLEM else last
        asking = _find_asking(source, parts[source.number])
        base = source.score / max(sources[0].score, 1e-9) - step * better
        if about_book and "/" not in source.doc_path:
            base += _GENERAL * (1 + (len(source.headings) == 1))
        for part in parts[source.number]:
            cover = find_share(worth, part.terms | named)
            value = base + _COVER * (cover + find_share(worth, part.terms | headings))
            reasons = [f"source {source.number}", f"{cover:.0%} of the question's words"]
            degree = 0.0
            if defines and not part.lists_pages:
                whole, *short = (measure_definition(part, name) for name in names)
                degree = max(whole, *(_NAMED * one for one in short), 0.0)
            points, reason = _judge_things(part, asked, worth, sides)
            if degree >= BELOW or (degree and better < EVIDENCE_DEPTH):
                value += _DEFINITION * degree
                reasons.append(f"defines {asked.subject!r} ({degree:.1f})")
            if not points and tells and any(map(tells, part.sentences)):
                points, reason = _FACT, "has the fact that is asked"
            if not points and degree < BELOW:  # a function's text may be code below its name
                points, reason = _judge_form(part, asked.kind, asks_trouble=asks_trouble)
            is_weak = part.start in asking or part.text in seen
            loss, fault = _judge_content(part, is_weak=is_weak, about_book=about_book)
            value += loss
            is_entry = degree >= _ENTRY and part.kinds == (TextBlockKind.LIST_ITEM,)
            is_entry |= degree == _ENTRY and _LABELLED.match(part.text) is not None
            reasons += [text for text in (fault or reason,) if text]
            valued.append(
                ValuedPart(part, value + points, value, tuple(reasons), is_weak, headed, is_entry)
            )
    return sorted(valued, key=lambda one: -one.value)


def share_out(question: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return each term of the question with its share of the total weight; the shares sum to 1."""
    worth = {term: weights.get(term, 1.0) for term in extract_terms(question)}
    total = sum(worth.values()) or 1.0
    return {term: weight / total for term, weight in worth.items()}


def find_share(worth: Mapping[str, float], terms: AbstractSet[str]) -> float:
    """Return the share of a question, 0 to 1, that a set of terms covers."""
    return sum(share for term, share in worth.items() if term in terms)


def _judge_things(
    part: Part,
    asked: ReadQuestion,
    worth: Mapping[str, float],
    sides: Sequence[AbstractSet[str]],
) -> tuple[float, str]:
    """Return what a part gains by what it compares, lists or repairs, with the reason."""
    if asked.kind is QuestionKind.COMPARISON and compares_things(part, worth, sides):
        return _COMPARISON, "compares the things that are asked"
    if asked.kind is QuestionKind.LIST and lists_things(part, asked.subject, worth):
        return _LISTING, f"lists {asked.subject}"
    if asked.kind is QuestionKind.PROBLEM and (degree := explains_trouble(part, worth)):
        return _TROUBLING * degree, f"is about the problem ({degree:.1f})"
    return 0.0, ""


def _judge_form(part: Part, kind: QuestionKind, *, asks_trouble: bool) -> tuple[float, str]:
    """Return what a part gains or loses by its form, with the reason; 0 and "" if nothing.

    A text about mistakes or other troubles helps only a question about them.
    """
    if not asks_trouble and _TROUBLES.search(" ".join(part.source.headings[-1:])):
        return _TROUBLED, "is about mistakes"
    wanted = {
        QuestionKind.CODE: part.has_code,
        QuestionKind.FORMULA: TextBlockKind.FORMULA in part.kinds,
    }
    if kind in wanted:
        return (_CODE, f"contains {kind.value}") if wanted[kind] else (0.0, "")
    if kind is QuestionKind.DEFINITION and part.has_code:
        return _UNFIT_CODE, "is code"
    if kind is QuestionKind.HOW_TO and (part.has_code or _gives_steps(part)):
        return _STEPS, "contains steps"
    if set(part.kinds) == {TextBlockKind.CODE}:
        return _UNFIT_CODE, "is code without an introduction"
    return 0.0, ""


def _gives_steps(part: Part) -> bool:
    """Return True for a numbered list or a formula, unless it asks something, as exercises do."""
    is_list = TextBlockKind.LIST in part.kinds and _NUMBER.match(part.text, part.introduction)
    is_formula = TextBlockKind.FORMULA in part.kinds
    return bool(is_list or is_formula) and not any(
        sentence.rstrip(" *_").endswith("?") for sentence in part.sentences
    )


def _judge_content(part: Part, *, is_weak: bool, about_book: bool) -> tuple[float, str]:
    """Return what a part loses because it answers nothing, with the reason; 0 and "" if nothing."""
    if is_weak:
        return _WEAK, "asks a question or was quoted before"
    if part.lists_pages or (part.announces and not about_book):
        return _PAGES, "is about pages"
    return 0.0, ""


def _find_asking(source: Source, parts: Sequence[Part]) -> set[int]:
    """Return the starts of the parts that ask the reader a question, as in a quiz or an exercise.

    On a quiz page, that is all text of a section before a label such as `Answer`.
    """
    labelled: set[int] = set()  # runs with a label so far
    asking = set()
    for part in parts:
        if part.labelled:
            labelled.add(part.run)
        is_open = source.content_type == ContentType.QUIZ and part.run not in labelled
        if is_open or part.text.rstrip(' *_`~\n"').endswith("?"):
            asking.add(part.start)
    return asking


MAX_WORDS: Final = 300
"""Limit for all passages of an answer together. One part, such as a long table, may exceed it."""

MAX_PASSAGES: Final = 3

_MAIN_WORDS: Final = 120  # size up to which the main passage takes in text around its best part
_FURTHER_WORDS: Final = 60  # the same for a further passage
_ALMOST: Final = 0.6  # value, relative to the main passage, of one that is almost as good
_NEW_SHARE: Final = 0.1  # least share of the question's terms that another further passage adds
_USEFUL: Final = 0.5  # least value of such a passage, relative to the main passage
_REPEATED: Final = 0.8  # a passage with this share of its terms shown before is a repetition


@dataclass(frozen=True, slots=True)
class PassageChoice:
    """A run of parts of one source that was chosen for an answer, with the reasons.

    Attributes:
        source: The source that the passage comes from.
        text: The Markdown text of the passage, exactly as in the source.
        parts: The parts in the order of the source, next to each other; at least one.
        words: The number of words of the passage.
        reasons: Reasons for the choice, as short texts for a reader.
    """

    source: Source
    text: str
    parts: tuple[Part, ...]
    words: int
    reasons: tuple[str, ...]


def choose_passages(
    question: str, sources: Sequence[Source], weights: Mapping[str, float], seen: str = ""
) -> tuple[PassageChoice, ...]:
    """Choose up to three passages that answer a question, the main passage first.

    Further passages come from the parts that answer one sub-question of a compound question best,
    and then from the parts with the highest values.

    Args:
        question: The question of the user.
        sources: Sources to quote from, best first.
        weights: Weight of each term of the question.
        seen: Text that the reader knows already. It is quoted only if nothing else is there.

    Returns:
        The passages. Empty only if the sources contain no text apart from headings.
    """
    from rag_pipeline.retrieval.search import split_question  # noqa: PLC0415  # loads numpy

    parts = {source.number: find_parts(source) for source in sources}
    ranked = value_parts(question, sources, parts, weights, RANK_STEP, seen)
    if not ranked:
        return ()
    weak = {_place(one.part) for one in ranked if one.is_weak}
    worth = share_out(question, weights)
    best = ranked[0].plain_value
    of_parts = [
        max(
            value_parts(text, sources, parts, weights, SUB_RANK_STEP, seen),
            key=lambda one: one.value + one.headed,
        )
        for text in split_question(question)
    ]
    asked = {_place(one.part) for one in of_parts}
    chosen = [_widen(ranked[0], parts, MAX_WORDS, weak, _MAIN_WORDS)]
    taken = {_place(part) for part in chosen[0].parts}
    shown, words = set[str]().union(*(part.terms for part in chosen[0].parts)), chosen[0].words
    above = set(find_distinct_terms(" ".join(chosen[0].source.headings)))
    for one in [*of_parts, *ranked[1:]]:
        if len(chosen) == MAX_PASSAGES:
            break
        left = MAX_WORDS - words
        if one.part.words > left or one.is_weak or _place(one.part) in taken:
            continue
        if len(one.part.terms & shown) >= _REPEATED * len(one.part.terms):
            continue
        adds = find_share(worth, one.part.terms - shown - above)
        is_new_section = all(choice.source is not one.part.source for choice in chosen)
        closeness = one.plain_value / best if best > 0 else 0.0
        is_close = _place(one.part) in asked or closeness >= _ALMOST
        is_useful = closeness >= _USEFUL and adds >= _NEW_SHARE
        if is_useful or (is_new_section and is_close):
            choice = _widen(one, parts, left, weak | taken, _FURTHER_WORDS)
            chosen.append(choice)
            taken.update(_place(part) for part in choice.parts)
            shown.update(*(part.terms for part in choice.parts))
            words += choice.words
            above |= find_distinct_terms(" ".join(choice.source.headings))
    return tuple(chosen)


def _place(part: Part) -> tuple[int, int]:
    """Return the number of a part's source and the part's start, which identify the part."""
    return part.source.number, part.start


def _widen(
    core: ValuedPart,
    parts: Mapping[int, Sequence[Part]],
    left: int,
    barred: AbstractSet[tuple[int, int]],
    size: int,
) -> PassageChoice:
    """Return a passage with the parts around its best part that fit.

    The part before is added if the passage would begin with a word that refers to it, or with a
    later step of a numbered list. Other parts
    are added while the passage stays short. An entry of a glossary is complete on its own.

    Args:
        core: The best part of the passage.
        parts: All parts, by the number of their source.
        left: Number of words that the passage may have.
        barred: Places of the parts that are not added.
        size: Number of words up to which the passage grows; a smaller limit than `left` applies.
    """
    number = core.part.source.number
    run = [part for part in parts[number] if part.run == core.part.run]
    first = last = run.index(core.part)
    words = core.part.words
    is_step = core.part.kinds == (TextBlockKind.LIST_ITEM,) and core.value > core.plain_value
    size *= 1 + is_step

    def fits(at: int, limit: int) -> bool:
        is_free = 0 <= at < len(run) and _place(run[at]) not in barred
        return is_free and words + run[at].words <= limit

    grown = True
    while grown:
        needs_earlier = refers_back(run[first].text) or (is_step and _LATER.match(run[first].text))
        grown = bool(needs_earlier) and fits(first - 1, left)
        if grown:
            first -= 1
            words += run[first].words
            continue
        for at in () if core.is_entry else (last + 1, first - 1):
            if fits(at, min(left, size)):
                first, last = min(first, at), max(last, at)
                words += run[at].words
                grown = True
    source, chosen = core.part.source, tuple(run[first : last + 1])
    text = source.text[chosen[0].start : chosen[-1].end]
    return PassageChoice(source, text, chosen, words, core.reasons)
