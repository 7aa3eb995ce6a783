"""Estimate the probability that passages contain the answer to a question.

ADR 58 in docs/adr says how the rule was measured; benchmarks/plain_questions.py prints the levels.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Level
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.abbreviations import add_other_forms, find_unspelled
from rag_pipeline.core.text.form_words import COUNTED_FORMS, find_form_terms, find_form_words
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import (
    extract_terms,
    find_content_words,
    find_distinct_terms,
)
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH, find_chunk_terms
from rag_pipeline.retrieval.models import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.core.text.abbreviations import Abbreviation
    from rag_pipeline.retrieval.models import RetrievalResult, ScoredChunk, WordNearness

ANSWERED_FROM: Final = 0.6
"""Lowest confidence at which passages count as an answer.

At most 10% of the questions that a book answers have a lower confidence (ADR 58).
"""

UNANSWERED: Final = 0.55
"""Highest confidence of passages without the kind of fact or the case that a question asks for."""

COVERED_FROM: Final = 0.3
"""Lowest confidence at which a book counts as covering the subject of a question.

Of the questions about other subjects, 98% have a lower confidence, and hardly any question that a
book answers (ADR 28).
"""

RELATED_FROM: Final = 0.33
"""Lowest mean of a passage's two cosines at which it has to do with the question (ADR 28)."""

STANDOUT_FROM: Final = 2.5
"""Standard deviations above the mean of unrelated questions from which a passage is related."""


@dataclass(frozen=True, slots=True)
class _AskedFact:
    """A kind of fact that a question asks for.

    Attributes:
        question: Pattern of the questions. Its group `of` names the thing that is counted.
        answer: Pattern of the fact in a sentence. If its group `fact` matches, the words before it
            say what it is, so that the sentence may be about the subject in other words. Its group
            `counted` has the words after a number.
        is_needed: False if a text without such a fact can answer the question as well.
    """

    question: re.Pattern[str]
    answer: re.Pattern[str]
    is_needed: bool = True


_MADE: Final = (
    r"\b(?:invent|creat|found|discover|develop|coin|design|introduc|propos|publish|author|built|build"
    r"|wrote|writ|made|maintain|teach|taught)\w*"
)
_DID: Final = (
    r"(?:invented|created|founded|discovered|develops|developed|coined|designed|introduced|proposed"
    r"|published|authored|wrote|built|builds|made|makes|maintains|maintained|teaches|taught)\b"
)
_ROLE: Final = (
    r"(?:[Ii]nventor|[Cc]reator|[Ff]ounder|[Aa]uthor|[Dd]esigner|[Mm]aintainer|CEO|[Pp]resident"
    r"|[Ii]nstructor|[Tt]eacher|[Ll]ecturer)s?"
)
_NAME: Final = r"[A-Z][\w'\u2019-]+(?:\s(?:[A-Z]\.\s?)?[A-Z][\w'\u2019-]+)"
_COUNT: Final = (
    r"(?<![\w.])(?:\d[\d.,]*|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|[a-z]+teen|[a-z]{3,5}ty|hundreds?|thousands?|millions?|any\s+number)(?!\w))"
)
_TIME: Final = r"(?:(?:milli)?second|minute|hour|day|week|month|year)s?\b"
_DATE: Final = (
    r"(?<![\w.])(?:1[5-9]|20)\d\d(?!\.?\w)|\b[Ww]eeks?\s\d|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
    r"|\b(?:January|February|March|April|May(?=\s\d)|June|July|August|September|October|November"
    r"|December)\b"
)
_ANY_CASE: Final = re.IGNORECASE


def _fact(question: str, answer: str, flags: int = 0, *, is_needed: bool = True) -> _AskedFact:
    return _AskedFact(re.compile(question, _ANY_CASE), re.compile(answer, flags), is_needed)


ASKED_FACTS: Final = (
    _fact(
        r"\bhow\s+many\s+(?P<of>\w+)",
        rf"{_COUNT}[\s-](?P<counted>(?:(?!(?:an?|the|you|we|it)\s)[\w-]+\s+){{0,2}}[\w-]+)",
        _ANY_CASE,
        is_needed=False,
    ),
    _fact(
        rf"\bwho(?:\s+\w+)?\s+{_MADE}|\bwho\s+(?:is|was|are|were)\s+the\s+(?:\w+\s+)?{_ROLE}\b",
        rf"(?:{_MADE}\s+(?:[\w']+\s+){{0,4}}?by|\b{_ROLE}(?:\s+(?:is|are|was|were))?:?)\s+"
        rf"(?P<fact>(?:[a-z]+\s+){{0,3}}?[A-Z][\w'\u2019-]+)|\b{_NAME}+,?\s+(?:[a-z]+\s+){{0,2}}?{_DID}"
        rf"|\b(?!(?:I|If|It|That|They|This|We|When|Who|You)\b)[A-Z][\w'\u2019-]+\s+{_DID}",
    ),
    _fact(
        r"\bwhen\s+(?:was|were|did)\b|\b(?:what|which)\s+(?:year|date|day)\b|\brelease\s+date\b"
        r"|\bwhen\s+(?:is|will|does)\b.*\b(?:releas\w*|due|deadline|semester)\b",
        _DATE,
    ),
    _fact(
        r"\bhow\s+much\s+(?:does|do|did)\b.*\bcosts?\W*$|\bhow\s+much\s+(?:is|are)\s+(?:an?|the)\b"
        r"|\bprices?\s+(?:of|for)\b|\bprices?(?:\s+\S+)?\W*$|\bhow\s+expensive\b"
        r"|\bwhere\s+(?:to|(?:can|do|could)\s+(?:i|we|you))\s+(?:buy|order)\b",
        r"\$\s?\d[\d.,]*(?=[\s)]|$)(?![^$\n]*\$)|[\u20ac\u00a3\u00a5]\s?\d|\d\s?[\u20ac\u00a3]"
        r"|\b(?:USD|EUR|dollars?|euros?|cents?|free\s+of\s+charge|buy|bought|purchas\w+|shops?"
        r"|vendors?|resellers?)\b",
        _ANY_CASE,
    ),
    _fact(
        r"\bhow\s+many\s+(?P<of>\w+)\s+"
        r"(?:(?:does|do|did|has|have)\s+(?!(?:i|we|you)\b)|(?:are|were|use)\b)",
        _COUNT,
        _ANY_CASE,
    ),
    _fact(
        r"\b(?:what|which|minimum|lowest|latest|newest)\s+(?:(?:is|the|minimum|lowest|latest|newest)"
        r"\s+)*(?P<of>\w+)\s+versions?\b",
        r"\d",
    ),
    _fact(r"\b(?:what|which)\s+versions?\s+of\s+(?P<of>\w+)", r"\d"),
    _fact(
        r"\bhow\s+(?:old|tall|heavy)\s+(?:is|are|was|were)\b"
        r"|\b(?:weight|height|size|range|life|lifetime|age|salary|payload)\s+of\b",
        r"\d",
    ),
    _fact(
        r"\bhow\s+long\s+(?:is|are|was|does|do|did|will)\b",
        rf"{_COUNT}[\s-]{_TIME}",
        _ANY_CASE,
        is_needed=False,
    ),
    _fact(
        r"\bhow\s+often\b",
        rf"\b(?:every|each|per|once|twice|times)\b|\b(?:hour|dai|week|month|year)ly\b|{_COUNT}\s?Hz",
        _ANY_CASE,
        is_needed=False,
    ),
    _fact(r"\bwhen\s+(?:is|are|will|does|do)\b", _DATE, is_needed=False),
    _fact(r"\bhow\s+much\s+(?P<of>\w+)", _COUNT, _ANY_CASE, is_needed=False),
)
"""The kinds of facts; the first one whose pattern fits a question counts."""

NO_EVIDENCE: Final = Evidence("", chunk_count=1_000, terms=())
"""For results built by hand: a book of a usual size, of which no words were counted."""

WEAKEST: Final = 10.0  # how much the least supported words dominate; at 0 all count alike


@dataclass(frozen=True, slots=True)
class GroundingRule:
    """A logistic rule that decides whether passages contain an answer, from weighted `Signals`.

    Attributes:
        semantic: Weight of the highest cosine between the question and a passage.
        support: Weight of the similarity between the question's single words and the passages.
        cover: Weight of the highest share of the question's terms in one passage.
        known: Weight of the share of the question's terms that occur in the book.
        headings: Weight of the highest share of the question's terms in a passage's headings.
        length: Weight of ln(number of compared words). Every word of a short question must fit; a
            long question has words that no passage needs to contain.
        log_size: Weight of ln(number of searched chunks); more chunks give more chance matches.
        bias: Constant term.
        standout: If above 0, the confidence is also limited by how far the best passage stands out
            from what unrelated questions reach: it is `ANSWERED_FROM` at `STANDOUT_FROM`
            deviations, and its logit grows by this number per deviation.
        near: If above 0, the confidence is at least `COVERED_FROM` from this cosine on. A small
            book lacks many words, so a question in other words must not hide a near passage.
    """

    semantic: float = 0.0
    support: float = 0.0
    cover: float = 0.0
    known: float = 0.0
    headings: float = 0.0
    length: float = 0.0
    log_size: float = 0.0
    bias: float = 0.0
    standout: float = 0.0
    near: float = 0.0

    def confidence(self, signals: Signals) -> float:
        """Return the probability, 0 to 1, that the passages contain the answer."""
        logit = (
            self.semantic * signals.semantic
            + self.support * signals.support
            + self.cover * signals.cover
            + self.known * signals.known
            + self.headings * signals.headings
            + self.length * math.log(max(1, signals.word_count))
            + self.log_size * math.log(max(1, signals.chunk_count))
            + self.bias
        )
        if self.standout > 0 and signals.standout is not None:
            level = math.log(ANSWERED_FROM / (1 - ANSWERED_FROM))
            logit = min(logit, level + self.standout * (signals.standout - STANDOUT_FROM))
        probability = 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))
        is_near = 0 < self.near <= signals.semantic
        return max(probability, COVERED_FROM) if is_near else probability


@dataclass(frozen=True, slots=True)
class Signals:
    """The inputs of a `GroundingRule`, measured on a question and its five best passages.

    Attributes:
        semantic: Highest mean of a passage's two cosines with the question (whole chunk and
            four-word windows), -1 to 1. A passage without cosines counts with its score.
        support: Similarity of the question's single words to the passages, -1 to 1. The words with
            the lowest similarity count most. Equal to `semantic` if no words were compared.
        cover: Highest weighted share of the question's terms in one passage with its headings.
        known: Weighted share of the question's terms that occur anywhere in the book.
        headings: Highest weighted share of the question's terms in the title and headings of one
            passage.
        word_count: Number of the question's words that were compared with the passages. Words of
            the form, such as `code`, count too, except those that ask for a meaning. An
            abbreviation counts as its long form.
        chunk_count: Number of searched chunks.
        standout: Distance of `semantic` from the mean of unrelated questions, in their standard
            deviations. None if it was not measured.
    """

    semantic: float
    support: float
    cover: float
    known: float
    headings: float
    word_count: int
    chunk_count: int
    standout: float | None = None


LEXICAL_RULE: Final = GroundingRule(cover=4.8, known=10.4, log_size=-0.78, bias=-2.4, standout=5.0)
"""For models without a measured rule.

Words decide, and the passages must be nearer than they are to unrelated questions. That does not
depend on the scale of the model's cosines (ADR 28).
"""

DEFAULT_RULE: Final = GroundingRule(semantic=16.8, support=19.7, known=9.7, bias=-20.9)
"""For the published local model, and for results built by hand, whose scores are cosines."""

TEXTBOOK_RULE: Final = GroundingRule(
    semantic=5.8, support=9.2, cover=0.9, known=4.0, headings=4.2, length=2.8, bias=-15.3, near=0.45
)
"""For the local model that was trained on questions to textbooks (ADR 58)."""

_RULES: Final = {
    "local/all-MiniLM-L6-v2-int8-7df275c0-late": DEFAULT_RULE,
    "local/all-MiniLM-L6-v2-textbook-int8-f845cad2-late": TEXTBOOK_RULE,
}
"""Rules by provider and model, measured with the default rank fusion."""


def choose_rule(model: str) -> GroundingRule:
    """Return the grounding rule measured for an embedding model, or else `LEXICAL_RULE`."""
    name = "/".join(model.split("/")[:2])
    return _RULES.get(name, LEXICAL_RULE)


def choose_level(confidence: float) -> Level:
    """Return how well passages answer a question, from the confidence of a `GroundingRule`."""
    if confidence >= ANSWERED_FROM:
        return Level.ANSWERED
    return Level.CLOSEST_PASSAGES if confidence >= COVERED_FROM else Level.NOT_COVERED


def is_related(chunk: ScoredChunk, evidence: Evidence) -> bool:
    """Return True if a passage is similar enough to the question to be offered as related.

    Args:
        chunk: A passage that was found for the question.
        evidence: The evidence of the result. If it tells how near unrelated questions come, this
            is the bar; otherwise it is `RELATED_FROM`, which fits the local models.
    """
    bar = RELATED_FROM
    if evidence.unrelated is not None:
        mean, deviation = evidence.unrelated
        bar = mean + STANDOUT_FROM * deviation
    return _nearness(chunk) >= bar


def measure_signals(result: RetrievalResult, question: str) -> Signals:
    """Measure how well the book and the five best passages of a result cover the question.

    The result must be from normal mode and have at least one passage.
    """
    evidence = result.evidence or NO_EVIDENCE
    weights = weigh_question(evidence, question)
    best, forms, words = result.chunks[:EVIDENCE_DEPTH], evidence.abbreviations, evidence.words
    terms_of_best = [
        add_other_forms(find_chunk_terms(chunk.metadata.heading_breadcrumb, chunk.text), forms)
        for chunk in best
    ]
    terms_above = [
        add_other_forms(find_distinct_terms(" ".join(chunk.metadata.heading_breadcrumb)), forms)
        for chunk in best
    ]
    # Without evidence, only the terms of the retrieved passages are known.
    missing = (
        {entry.term for entry in evidence.terms if not entry.known}
        if evidence.terms
        else set(weights).difference(*terms_of_best)
    )
    semantic = max((_nearness(chunk) for chunk in best), default=0.0)
    standout = None
    if evidence.unrelated is not None:
        mean, deviation = evidence.unrelated
        standout = (semantic - mean) / deviation if deviation > 0 else None
    return Signals(
        semantic=semantic,
        support=_mean_of_weakest(words) if words else semantic,
        cover=max((_share(weights, terms) for terms in terms_of_best), default=0.0),
        known=_share(weights, set(weights) - missing),
        headings=max((_share(weights, terms) for terms in terms_above), default=0.0),
        word_count=_count_words(question, forms, len(words)),
        chunk_count=evidence.chunk_count,
        standout=standout,
    )


def _count_words(question: str, forms: Sequence[Abbreviation], compared: int) -> int:
    """Return the number of words of a question, with those of the long forms of abbreviations."""
    if not compared:
        return 0
    form_words = find_form_words(question, COUNTED_FORMS)
    counted = sum(
        any(first <= start < last for first, last in form_words)
        for start, _ in find_content_words(question)
    )
    longer = sum(len(find_content_words(one.long)) - 1 for one in find_unspelled(question, forms))
    return compared + counted + longer


def lacks_asked_fact(chunks: Sequence[ScoredChunk], question: str) -> bool:
    """Return True if a question asks for a kind of fact that no passage contains.

    Such facts are a person, a date, a price, a number, a version or a measure. Passages about the
    subject without such a fact are related, but they do not answer the question.
    """
    tells = read_asked_fact(question, only_needed=True)
    return tells is not None and not any(
        tells(chunk.text[start:end])
        for chunk in chunks[:EVIDENCE_DEPTH]
        for start, end in split_sentences(chunk.text)
    )


def read_asked_fact(
    question: str, above: AbstractSet[str] = frozenset(), *, only_needed: bool = False
) -> Callable[[str], bool] | None:
    """Return a test for sentences with the fact that a question asks for; None if it asks for none.

    A fact counts in a sentence with a term of the question, or with the name of the thing that is
    counted. The headings above the sentence may name it too.

    Args:
        question: The question.
        above: The terms of the headings above the sentences.
        only_needed: True leaves out facts without which a text can answer the question as well.
    """
    facts = (fact for fact in ASKED_FACTS if fact.is_needed or not only_needed)
    matches = ((fact, fact.question.search(question)) for fact in facts)
    fact, asked = next(((one, match) for one, match in matches if match), (None, None))
    if fact is None or asked is None:
        return None
    terms = frozenset(extract_terms(question))
    named = frozenset(extract_terms(asked.groupdict().get("of") or question))
    answer = fact.answer

    def tells(sentence: str) -> bool:
        found = answer.search(sentence)
        if found is None:
            return False
        told, counted = (found.groupdict().get(name) for name in ("fact", "counted"))
        around = find_distinct_terms(counted) if counted else above | find_distinct_terms(sentence)
        is_about = told is not None or bool(named & around)
        return is_about and not find_distinct_terms(told or found.group()) <= terms

    return tells


_BEFORE_CASE: Final = r"(?:on|in|with|using|under|from)"
_CASE_WORD: Final = r"[^\W_][\w+#.-]*[\w+#]"
QUALIFIED: Final = re.compile(
    r"\s(?P<way>from\s+(?:source|scratch))\b"
    rf"|\s(?:{_BEFORE_CASE}|for(?=\s+\S+\s*$))\s+(?:(?:an?|the|my|your)\s+)?"
    r"(?!(?:\S+\s+)?(?:details?|depth|general|practice|theory|short|brief|total|particular|use|english"
    r"|words?|terms|sentences?|nutshell|life|points?|steps?|examples?|code|beginners?|dummies|me|us"
    r")\b)"
    rf"(?P<words>{_CASE_WORD}(?:\s+(?!{_BEFORE_CASE}\s){_CASE_WORD})?)"
    rf"(?=\s*[?!]*$|\s+{_BEFORE_CASE}\s)"
    r"|\b(?P<unit>version|release|module|chapter|part|unit|lesson|lecture|section)\s+"
    r"(?P<number>\d+(?:\.\d+)*)",
    re.IGNORECASE,
)
"""Words that limit a question to a case, such as "on windows", or a number after its unit."""

PLURAL: Final = re.compile(r"[^s]s$")
"""A word that may be a name, such as `windows`, so that a passage must have the same form."""

MAX_QUALIFIED: Final = 12
"""Words of a question up to which its last words name such a case. A longer one tells a story."""


def lacks_qualifier(
    chunks: Sequence[ScoredChunk], question: str, forms: Sequence[Abbreviation] = ()
) -> bool:
    """Return True if a short question names a case or a number that no passage contains.

    A passage about the same in another case is related, but it does not answer the question. Of
    "from source", a passage must have both words, because `source` alone is a command.

    Args:
        chunks: The passages that were found for the question.
        question: The question.
        forms: Abbreviations of which the passages may have the other form.
    """
    cases = tuple(QUALIFIED.finditer(question))
    if not cases or len(question.split()) > MAX_QUALIFIED:
        return False
    best = chunks[:EVIDENCE_DEPTH]
    shown = [" ".join((*chunk.metadata.heading_breadcrumb, chunk.text)) for chunk in best]
    text = "\n".join(shown).lower()
    terms = add_other_forms(find_distinct_terms(text), forms)

    def has(case: re.Match[str]) -> bool:
        if number := case["number"]:
            unit = case["unit"].lower()
            before = "" if unit in {"version", "release"} else rf"{unit}\W{{0,2}}"
            return re.search(rf"{before}(?<![\d.]){re.escape(number)}(?!\.?\d)", text) is not None
        if case["way"]:
            return " ".join(case["way"].lower().split()) in " ".join(text.split())
        return all(map(has_word, case["words"].lower().split()))

    def has_word(word: str) -> bool:
        if PLURAL.search(word):
            return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
        return terms.issuperset(extract_terms(word)) or word in re.sub(r"[\s-]", "", text)

    return not all(map(has, cases))


def is_named_by_heading(chunks: Sequence[ScoredChunk], question: str) -> bool:
    """Return True if the heading of a passage has all terms of a question and no other.

    Words of the form do not count. None of the near questions of the tuning halves names a heading
    in this way (ADR 81).
    """
    asked = frozenset(extract_terms(question)) - find_form_terms(question)
    return any(
        find_distinct_terms(chunk.metadata.section_heading or chunk.metadata.title) == asked
        and any(block.kind is not TextBlockKind.HEADING for block in chunk.metadata.blocks)
        for chunk in chunks[:EVIDENCE_DEPTH]
    )


def weigh_question(evidence: Evidence, question: str) -> dict[str, float]:
    """Map each distinct term of the question to its weight in the book; rare terms weigh more.

    The weights were measured by the search. A term without a measured weight gets the mean of the
    others. Without known terms, each term weighs 1.0.
    """
    known = {entry.term: entry.weight for entry in evidence.terms}
    typical = math.fsum(known.values()) / len(known) if known else 1.0
    return {term: known.get(term, typical) for term in extract_terms(question)}


def _mean_of_weakest(words: Sequence[WordNearness]) -> float:
    """Return a weighted mean of the words' similarity to the passages; the lowest values dominate.

    A word that no passage is similar to therefore cannot be outweighed by the other words.
    """
    total = math.fsum(word.weight for word in words)
    spread = math.fsum(word.weight * math.exp(-WEAKEST * word.nearness) for word in words)
    return -math.log(spread / total) / WEAKEST


def _nearness(chunk: ScoredChunk) -> float:
    channels = chunk.channels
    return chunk.score if channels is None else (channels.dense + channels.windows) / 2


def _share(weights: Mapping[str, float], terms: AbstractSet[str]) -> float:
    total = math.fsum(weights.values())
    found = math.fsum(weight for term, weight in weights.items() if term in terms)
    return found / total if total > 0 else 0.0
