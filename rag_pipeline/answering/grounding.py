"""Decide how well retrieved passages answer a question, and prepare them as sources."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import (
    ANSWERED_FROM,
    DEFAULT_RULE,
    NO_EVIDENCE,
    UNANSWERED,
    choose_level,
    choose_rule,
    is_named_by_heading,
    is_related,
    lacks_asked_fact,
    lacks_qualifier,
    measure_signals,
)
from rag_pipeline.answering.models import (
    REPLIES,
    Answer,
    AnswerKind,
    GroundedResponse,
    Level,
    Notice,
    Reason,
)
from rag_pipeline.answering.prompts import build_instruction, build_sources, format_context
from rag_pipeline.answering.quoting.choosing import is_introduced_by
from rag_pipeline.answering.quoting.passages import hide_solutions
from rag_pipeline.answering.reading.languages import find_languages
from rag_pipeline.answering.reading.questions import QuestionKind, read_question
from rag_pipeline.answering.selected_blocks import find_selected_blocks
from rag_pipeline.answering.voice import Voice
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.terms import (
    count_words,
    extract_terms,
    find_content_words,
    find_distinct_terms,
    is_latin,
)
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.queries import Mode, build_point_filter
from rag_pipeline.retrieval.relatedness import SelectionVerdict

if TYPE_CHECKING:
    from rag_pipeline.retrieval.models import Evidence, RetrievalResult


def decline(grounded: GroundedResponse, voice: Voice) -> GroundedResponse:
    """Return a refusal for a question that a model declined to answer from the sources."""
    selected = grounded.mode == Mode.SELECTED_TEXT_ONLY
    return replace(
        grounded,
        level=Level.NOT_COVERED,
        reason=Reason.MODEL_DECLINED,
        message=voice.say("selection_declined" if selected else "declined"),
    )


def make_refusal(grounded: GroundedResponse, voice: Voice, question: str = "") -> Answer:
    """Return the answer that is a refusal or a fixed reply.

    The citations of a refusal are the related sections, which its text lists, or the selection.
    """
    is_reply, related = grounded.reason in REPLIES, grounded.related
    text = grounded.message
    if related and not is_reply:
        places = [f"{one.place} ({one.url})" if one.url else one.place for one in related]
        text += f"\n\n{voice.say('related')}" + "".join(f"\n- {place}" for place in places)
    return Answer(
        question=question,
        text=text,
        kind=AnswerKind.REPLY if is_reply else AnswerKind.REFUSED,
        sentences=(),
        citations=grounded.citations if grounded.mode == Mode.SELECTED_TEXT_ONLY else related,
        grounding=grounded,
        notices=grounded.notices,
    )


MAX_CONTEXT_TOKENS: Final = 3_000
"""Limit for all sources together. Passages that do not fit are left out."""

RELATED_SECTIONS: Final = 3

_HIRAGANA: Final = re.compile("[\u3040-\u309f]+")
"""Pairs of characters that are mostly grammar in Japanese, such as the ends of verbs."""

COVERS: Final = 0.6
"""Share of a question's terms in one passage from which a related passage is never hidden.

An unrelated passage must have all terms that the book has, because everyday words meet by chance in
a large book (ADR 71).
"""

EXACT: Final = re.compile(r"(?!(?:1[5-9]|20)\d\d$)\d{3,}|\w*[a-z][A-Z]\w*|\w+_\w+")
"""Words with only one meaning: numbers such as 409 (but not years) and names such as `armId`."""

_LEAST_SHARED: Final = 0.2
"""Smallest share of a question's terms that passages must contain if the model cannot read them.

The local model cannot read scripts such as Arabic, so only the terms tell if a passage fits.
"""


def apply_grounding_policy(
    result: RetrievalResult,
    question: str,
    *,
    max_context_tokens: int = MAX_CONTEXT_TOKENS,
    voice: Voice | None = None,
) -> GroundedResponse:
    """Decide how well passages answer a question, and prepare sources, or a refusal.

    In normal mode a measured rule decides, from the similarity of the passages and from how much of
    the question their words cover. In selected-text mode the verdict about that text decides.
    Headings without a text answer nothing.

    Args:
        result: Result of `Retriever.retrieve`. If its `evidence` is None, its passages decide.
        question: The question of the user.
        max_context_tokens: Limit for all sources together. The first passage is always complete.
        voice: The language and the words of refusals and notices, and if it tells the solutions of
            quizzes. None takes the defaults.

    Returns:
        Sources, context, instruction, citations and the decision. In normal mode also up to three
        related sections, which are fewer or none if the passages are not about the question.
    """
    voice = voice or Voice()
    selected = result.mode == Mode.SELECTED_TEXT_ONLY
    sources = build_sources(
        result.chunks,
        None if selected else max_context_tokens,
        None if selected else question,
    )
    if selected:
        sources = tuple(replace(one, blocks=find_selected_blocks(one.text)) for one in sources)
    elif not voice.tells_solutions:
        sources = tuple(map(hide_solutions, sources))
    level, reason, confidence = _decide(result, question)
    blocks = [block.kind for source in sources for block in source.blocks]
    if blocks and set(blocks) == {TextBlockKind.HEADING}:
        level, reason = Level.NOT_COVERED, Reason.NO_PASSAGES
    notices = _collect_notices(result, question, voice, refused=level is Level.NOT_COVERED)
    evidence = result.evidence or NO_EVIDENCE
    near = (one.citation for one in result.chunks if is_related(one, evidence))
    related = () if selected else tuple(dict.fromkeys(near))[:RELATED_SECTIONS]
    if level is Level.NOT_COVERED and not related and _knows_no_word(result):
        others = (notice for notice in notices if notice.code != "names_missing")
        reason, notices = Reason.NO_WORDS, (voice.note("no_words"), *others)
    code = (_SELECTED_MESSAGES if selected else _MESSAGES)[reason]
    if code == "closest" and _only_mentions(result, question):
        code = "mentioned"
    return GroundedResponse(
        context=format_context(sources, question, Mode(result.mode)),
        system_instruction=build_instruction(Mode(result.mode), voice),
        citations=tuple(source.citation for source in sources),
        mode=Mode(result.mode),
        level=level,
        reason=reason,
        sources=sources,
        confidence=confidence,
        message=voice.say(code) if code else "",
        related=related,
        notices=notices,
    )


def find_missing_names(evidence: Evidence, question: str) -> tuple[str, ...]:
    """Return the names in the question that do not occur in the book, in the question's order.

    A name is a word with a capital letter, digit or underscore after its first character, or a
    capitalized word that does not begin the question. A number is not a name. `ROS2` is not missing
    if `ROS` and `2` occur. Missing names that follow each other in the question are one name, such
    as a first and a last name.
    """
    first = question.split(maxsplit=1)[0] if question.strip() else ""
    asked, names = " ".join(question.split()), list[str]()
    for word in dict.fromkeys(entry.word for entry in evidence.terms):
        inner = any(char.isupper() or char.isdigit() or char == "_" for char in word[1:])
        is_name = inner or (word[:1].isupper() and not first.startswith(word))
        if not is_name or word.isdigit():
            continue
        whole, *parts = [entry.known for entry in evidence.terms if entry.word == word]
        joined = any(char.isdigit() or char == "_" for char in word) and parts and all(parts)
        if whole or joined:
            continue
        longer = f"{names[-1]} {word}" if names else ""
        if longer and longer in asked:
            names[-1] = longer
        else:
            names.append(word)
    return tuple(names)


_MESSAGES: Final = {
    Reason.SUFFICIENT: "",
    Reason.UNCERTAIN: "closest",
    Reason.NO_PASSAGES: "no_passages",
    Reason.NOT_COVERED: "not_covered",
    Reason.NO_WORDS: "no_words",
    Reason.UNRELATED_TO_SELECTION: "selection_unrelated_answer",
}

_SELECTED_MESSAGES: Final = {
    **_MESSAGES,
    Reason.UNCERTAIN: "selection_closest",
    Reason.NO_PASSAGES: "selection_heading",
}

_REASONS: Final = {
    Level.ANSWERED: Reason.SUFFICIENT,
    Level.CLOSEST_PASSAGES: Reason.UNCERTAIN,
    Level.NOT_COVERED: Reason.NOT_COVERED,
}

_SELECTED: Final = {
    SelectionVerdict.ANSWERS: (Level.ANSWERED, Reason.SUFFICIENT, None),
    SelectionVerdict.MAY_NOT_ANSWER: (Level.CLOSEST_PASSAGES, Reason.UNCERTAIN, None),
    SelectionVerdict.UNRELATED: (Level.NOT_COVERED, Reason.UNRELATED_TO_SELECTION, None),
}


def _decide(result: RetrievalResult, question: str) -> tuple[Level, Reason, float | None]:
    """Return how well the passages answer the question: the level, its reason and the confidence.

    The confidence is a probability from 0 to 1. In selected-text mode it is None.
    """
    if not result.chunks:
        return Level.NOT_COVERED, Reason.NO_PASSAGES, 0.0
    if result.mode == Mode.SELECTED_TEXT_ONLY:
        return _SELECTED[result.verdict]
    rule = choose_rule(result.evidence.model) if result.evidence else DEFAULT_RULE
    signals = measure_signals(result, question)
    confidence = rule.confidence(signals)
    if is_named_by_heading(result.chunks, question) or _is_defined(result, question):
        confidence = max(confidence, ANSWERED_FROM)
    evidence, chunks = result.evidence or NO_EVIDENCE, result.chunks
    forms = evidence.abbreviations
    if lacks_asked_fact(chunks, question) or lacks_qualifier(chunks, question, forms):
        confidence = min(confidence, UNANSWERED)
    level = choose_level(confidence)
    best = chunks[:EVIDENCE_DEPTH]
    is_near = any(is_related(chunk, evidence) for chunk in best)
    covers = max(COVERS, 0 if is_near else signals.known)
    exact = {entry.term for entry in evidence.terms if entry.known and EXACT.fullmatch(entry.word)}
    has_exact = exact and any(exact & find_distinct_terms(chunk.text) for chunk in best)
    is_found = signals.cover >= covers or has_exact
    if level is Level.NOT_COVERED and (is_found or _is_beyond_model(result)):
        level = Level.CLOSEST_PASSAGES
    return level, _REASONS[level], confidence


def _is_defined(result: RetrievalResult, question: str) -> bool:
    """Return True if a question asks for the meaning of a term, and a passage says what it is."""
    asked = read_question(question)
    return asked.kind is QuestionKind.DEFINITION and any(
        is_introduced_by(chunk.text, asked.subject) for chunk in result.chunks[:EVIDENCE_DEPTH]
    )


def _only_mentions(result: RetrievalResult, question: str) -> bool:
    """Return True if a question asks for the meaning of a term, and each term of it is found."""
    asked = read_question(question)
    terms = frozenset(extract_terms(asked.subject))
    return asked.kind is QuestionKind.DEFINITION and any(
        terms <= find_distinct_terms(chunk.text) for chunk in result.chunks[:EVIDENCE_DEPTH]
    )


def _knows_no_word(result: RetrievalResult) -> bool:
    """Return True if a text has no word of the book and no stop word, so that it may mean nothing.

    A sentence with stop words, such as "Who won it?", is a question that the book does not cover.
    """
    terms, question = (result.evidence or NO_EVIDENCE).terms, result.query.question
    if not terms or any(term.known for term in terms):
        return False
    is_foreign = find_languages(question, result.chunks) is not None
    return not is_foreign and len(find_content_words(question)) >= count_words(question)


def _is_beyond_model(result: RetrievalResult) -> bool:
    """Return True if the similarity of the passages says little about a question.

    This is the case if the passages are in another language than the question. It is also the case
    if the local model does not know the script of both, and the passages contain a part of the
    question's terms.
    """
    if find_languages(result.query.question, result.chunks) is not None:
        return True
    evidence = result.evidence or NO_EVIDENCE
    if not evidence.model.startswith("local/"):
        return False
    weights = {
        term.term: term.weight for term in evidence.terms if _HIRAGANA.fullmatch(term.term) is None
    }
    if 2 * sum(not is_latin(term) for term in weights) <= len(weights):
        return False
    found = find_distinct_terms("\n".join(chunk.text for chunk in result.chunks))
    shared = sum(weight for term, weight in weights.items() if term in found)
    return shared >= _LEAST_SHARED * sum(weights.values())


def _collect_notices(
    result: RetrievalResult, question: str, voice: Voice, *, refused: bool
) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if result.notice and not (refused and result.mode == Mode.SELECTED_TEXT_ONLY):
        is_normal = result.mode == Mode.NORMAL
        code = "scope" if is_normal else _SELECTION_NOTICES.get(result.verdict, "selection_short")
        notices.append(Notice(code, result.notice))
    foreign = find_languages(result.query.question, result.chunks)
    if foreign:
        asked, written = foreign
        own = {"source": "your selection"} if result.mode == Mode.SELECTED_TEXT_ONLY else {}
        notices.append(voice.note("other_language", asked=asked, written=written, **own))
    elif result.search_question is not None:
        notices.append(voice.note("search_changed", question=result.search_question))
    missing = find_missing_names(result.evidence or NO_EVIDENCE, question)
    if missing and not foreign:  # the words of another language are no names
        notices.append(voice.note("names_missing", names=", ".join(missing)))
    limited = bool(build_point_filter(result.query.filters).fields)
    if refused and limited and result.mode == Mode.NORMAL:
        notices.append(voice.note("filtered"))
    return tuple(notices)


_SELECTION_NOTICES: Final = {
    SelectionVerdict.UNRELATED: "selection_unrelated",
    SelectionVerdict.MAY_NOT_ANSWER: "selection_uncertain",
}
