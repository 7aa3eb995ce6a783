"""Answer a question without a chat model: quote the passages that answer it best.

All text of these answers is copied from the sources, except the place above each passage.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import read_asked_fact
from rag_pipeline.answering.models import Answer, AnswerKind, AnswerSentence, Passage
from rag_pipeline.answering.prompts import cite_sources
from rag_pipeline.answering.quoting.choosing import (
    BELOW,
    choose_passages,
    is_defined_by,
    list_names,
    measure_definition,
)
from rag_pipeline.answering.quoting.passages import (
    describes_image,
    ends_sentence,
    find_figures,
    refers_back,
)
from rag_pipeline.answering.reading.questions import QuestionKind, read_question
from rag_pipeline.answering.selected_blocks import complete_marks
from rag_pipeline.answering.tables import Unit, split_units
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.terms import count_words, extract_terms, find_distinct_terms
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.answering.models import GroundedResponse, Notice
    from rag_pipeline.answering.quoting.choosing import PassageChoice

_MAX_HIGHLIGHTS: Final = 3  # sentences marked in one passage
_ENTRY_SENTENCES: Final = 3  # size up to which a text is an entry, as in a glossary
_MARKED_SHARE: Final = 0.6  # least weight of a marked sentence's terms, relative to the best one
_LEANING: Final = 0.4  # share of its weight that a sentence keeps if it says little without others
_WHOLE_WORDS: Final = 5  # size from which a sentence says something on its own

_LABEL: Final = re.compile(
    r"(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?(?:\*\*|__)[^*_\n]+(?:\*\*|__)[.:!?]?"
)
_HEADING_MARKS: Final = re.compile(r"[\\\[\]*_`<]")  # a heading is shown as it is written


def quote_answer(
    grounded: GroundedResponse,
    question: str,
    weights: Mapping[str, float],
    notices: Sequence[Notice] = (),
    seen: str = "",
) -> Answer:
    """Return an answer that quotes the sources.

    Args:
        grounded: The sources to quote from.
        question: The question of the user.
        weights: Weight of each term of the question.
        notices: Say why no model wrote the answer. They are the last notices of the answer.
        seen: Text that the reader knows already, from the answers before a follow-up.

    Returns:
        The answer with its passages. Its sentences are the marked sentences of each passage, or the
        whole passage if none is marked.
    """
    choices = choose_passages(question, grounded.sources, weights, seen)
    passages = tuple(
        Passage(
            number=choice.source.number,
            text=choice.text,
            doc_path=choice.source.doc_path,
            start_line=choice.parts[0].start_line,
            end_line=choice.parts[-1].end_line,
            citation=choice.source.citation,
            highlights=_mark_sentences(choice, question, weights),
            figures=find_figures(
                choice.source, choice.parts[0].start_line, choice.parts[-1].end_line
            ),
        )
        for choice in choices
    )
    selected = grounded.mode == Mode.SELECTED_TEXT_ONLY
    text = format_selection(choices) if selected else format_passages(choices)
    sentences = [
        AnswerSentence(passage.text[start:end], (passage.number,))
        for passage in passages
        for start, end in passage.highlights or [(0, len(passage.text))]
    ]
    quoted = Answer(
        question=question,
        text=text,
        kind=AnswerKind.EXTRACTED,
        sentences=tuple(sentences),
        citations=(),
        grounding=grounded,
        passages=passages,
        notices=(*grounded.notices, *notices),
        explanation=tuple(
            f"[{choice.source.number}] {', '.join(choice.reasons)}" for choice in choices
        ),
    )
    return cite_sources(quoted)


def format_passages(choices: Sequence[PassageChoice]) -> str:
    """Join passages into a Markdown text, each below the place that it comes from.

    The place is a link to the section, followed by the number of the source.
    """
    shown = []
    for choice in choices:
        citation, number = choice.source.citation, choice.source.number
        place = _HEADING_MARKS.sub(r"\\\g<0>", citation.place)
        linked = f"[{place}]({citation.url})" if citation.url else place
        shown.append(f"**{linked}** [{number}]\n\n{choice.text}")
    return "\n\n".join(shown)


def format_selection(choices: Sequence[PassageChoice]) -> str:
    """Join passages of a selected text into a Markdown text that contains nothing else.

    The marks of code and formulas are completed, because a reader may have selected only a part of
    a block. The number of the source has a line of its own, except after a paragraph, because text
    directly after a list, a table or code would belong to that block.
    """
    shown = []
    for choice in choices:
        gap = " " if choice.parts[-1].kinds[-1] is TextBlockKind.PARAGRAPH else "\n\n"
        shown.append(f"{_complete_blocks(choice)}{gap}[{choice.source.number}]")
    return "\n\n".join(shown)


def _complete_blocks(choice: PassageChoice) -> str:
    text, low, high = choice.text, choice.parts[0].start, choice.parts[-1].end
    for block in reversed(choice.source.blocks):
        if low <= block.start and block.end <= high:
            start, end = block.start - low, block.end - low
            text = text[:start] + complete_marks(text[start:end], block.kind) + text[end:]
    return text


def _mark_sentences(
    choice: PassageChoice, question: str, weights: Mapping[str, float]
) -> tuple[tuple[int, int], ...]:
    """Return the places of the sentences with most terms of the question, in order of the text.

    A short sentence, or one that refers to the text before it, counts less, because it may be shown
    alone. If the question asks for a kind of fact, only the sentences with such a fact count. If it
    asks for the meaning of a term, the sentence that defines it is marked.
    In a short text below a heading that is the term, as in a glossary, that is the first sentence.
    So it is if no sentence has a term of the question, but a heading has.
    """
    source, low, high = choice.source, choice.parts[0].start, choice.parts[-1].end
    asked = {term: weights.get(term, 1.0) for term in extract_terms(question)}
    units = [
        unit
        for unit in split_units(source.text, source.blocks)
        if not unit.is_block and unit.first is not TextBlockKind.HEADING
        if low <= unit.start and unit.end <= high
        if not describes_image(source, source.text[unit.start : unit.end])
    ]
    units = _join_labels(source.text, units)
    texts = {unit: source.text[unit.start : unit.end] for unit in units}
    listed = TextBlockKind.LIST_ITEM
    sentences = [unit for unit in units if unit.first is listed or ends_sentence(texts[unit])]
    units = sentences or units  # a text without an end is a label, such as the title of a note
    defining = _find_definition(choice, [texts[unit] for unit in units], question, weights)
    if defining is not None:
        return ((units[defining].start - low, units[defining].end - low),)
    above = find_distinct_terms(" ".join(source.headings))
    tells = read_asked_fact(question, above)
    units = [unit for unit in units if tells and tells(texts[unit])] or units
    shares = {
        unit: sum(asked[term] for term in asked.keys() & find_distinct_terms(texts[unit]))
        * (_LEANING if refers_back(texts[unit]) or count_words(texts[unit]) < _WHOLE_WORDS else 1.0)
        for unit in units
    }
    best = max(shares.values(), default=0.0)
    if units and not best and asked.keys() & above:
        return ((units[0].start - low, units[0].end - low),)
    marked = sorted(units, key=lambda unit: (-shares[unit], unit.start))[:_MAX_HIGHLIGHTS]
    return tuple(
        (unit.start - low, unit.end - low)
        for unit in sorted(marked, key=lambda unit: unit.start)
        if shares[unit] > 0 and shares[unit] >= _MARKED_SHARE * best
    )


def _join_labels(text: str, units: Sequence[Unit]) -> list[Unit]:
    """Return the units of a text; a bold label such as "**Numbers.**" is one with the next unit."""
    joined: list[Unit] = []
    for unit in units:
        before = joined[-1] if joined else unit
        if (
            _LABEL.fullmatch(text, before.start, before.end)
            and "\n\n" not in text[before.end : unit.start]
        ):
            joined[-1:] = [replace(unit, start=before.start, first=before.first)]
        else:
            joined.append(unit)
    return joined


def _find_definition(
    choice: PassageChoice, sentences: list[str], question: str, weights: Mapping[str, float]
) -> int | None:
    """Return the index of the sentence that defines the term that a question asks for, or None."""
    asked = read_question(question)
    if asked.kind is not QuestionKind.DEFINITION:
        return None
    names = list_names(asked.subject, weights)
    for at, sentence in enumerate(sentences):
        if any(is_defined_by(sentence, name) for name in names):
            return at
    is_entry = 0 < len(sentences) <= _ENTRY_SENTENCES
    headed = (measure_definition(choice.parts[0], name) >= BELOW for name in names)
    return 0 if is_entry and any(headed) else None
