"""Run a golden set through an assistant, and score the answers as a reader would see them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag_pipeline.answering import Answer, AnswerKind, Passage, Reason
from rag_pipeline.answering.checking import count_sentences
from rag_pipeline.core.models import ChunkLimits, ContentType, TextBlockKind
from rag_pipeline.core.text.sentences import find_page_line, split_sentences
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.evaluation.measures import compute, group_by
from rag_pipeline.evaluation.records import (
    AnswerResult,
    AnswerScores,
    AnswersReport,
    DefinitionAnswer,
    DefinitionScores,
    ModelScores,
    PassageScores,
    SelectionAnswer,
    SelectionScores,
    SourcePlace,
    hits_section,
)
from rag_pipeline.evaluation.report import name_error
from rag_pipeline.ingestion.markdown.blocks import find_text_blocks, read_span
from rag_pipeline.retrieval import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import Block, Document, ParsedDoc
    from rag_pipeline.evaluation.golden_set import (
        DefinitionCase,
        ExpectedSection,
        GoldenQuery,
        GoldenSet,
        SelectedTextCase,
    )


_CITATION: Final = re.compile(r"[ \t]*(?<![\w\])])\[\d{1,3}\]")
_ADDRESS: Final = re.compile(r"\]\([^()\s]*\)")


def find_facts(facts: Iterable[str], text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the facts that occur in an answer's text, and those that are missing from it.

    Letter case, citations such as `[1]`, the addresses of links and the kind and amount of white
    space do not matter. A bracket directly after a word, such as `values[1]`, is not a citation.

    Args:
        facts: Regular expressions.
        text: The text of the answer.
    """
    shown = " ".join(_ADDRESS.sub("]", _CITATION.sub("", text)).split())
    found = tuple(fact for fact in facts if re.search(fact, shown, re.IGNORECASE))
    return found, tuple(fact for fact in facts if fact not in found)


_QUIZZES: Final = frozenset({ContentType.QUIZ, ContentType.ASSESSMENT})
_CODE_SHARE: Final = 0.5  # with more code than this, a passage is a code block
_EMPHASIS: Final = re.compile(r"[*_`]+$")


def find_broken_passages(
    answer: Answer, documents: Mapping[str, ParsedDoc], max_chunk_tokens: int
) -> tuple[str, ...]:
    """Return the passages of an answer that are not whole blocks of their document.

    A passage is whole if its text is the cleaned text of the blocks on its lines. White space does
    not matter. A block that is longer than a chunk may be cut between two sentences.

    Args:
        answer: An answer from the whole book.
        documents: The parsed documents by path.
        max_chunk_tokens: Largest size of a chunk of text, in cl100k_base tokens.
    """
    return tuple(
        passage.text
        for passage in answer.passages
        if not _is_whole(passage, documents, max_chunk_tokens)
    )


def find_broken_selections(answer: Answer, selection: str) -> tuple[str, ...]:
    """Return the passages of an answer that are not whole blocks of the selected text."""
    blocks = find_text_blocks(selection) if selection.strip() else ()
    spans = {
        _close_up(selection[first.start : last.end])
        for number, first in enumerate(blocks)
        for last in blocks[number:]
    }
    return tuple(one.text for one in answer.passages if _close_up(one.text) not in spans)


def _close_up(text: str) -> str:
    """Return the text without white space."""
    return "".join(text.split())


def _is_whole(passage: Passage, documents: Mapping[str, ParsedDoc], max_chunk_tokens: int) -> bool:
    parsed = documents.get(passage.doc_path)
    blocks = _find_blocks(passage, parsed) if parsed else []
    quoted = _close_up(passage.text)
    if parsed is None or not blocks or not quoted:
        return False
    whole = _close_up(read_span(parsed, blocks[0].start, blocks[-1].end))
    before, _, after = whole.partition(quoted)
    starts = _read_edges(blocks[0], max_chunk_tokens)
    ends = _read_edges(blocks[-1], max_chunk_tokens, at_end=True)
    return quoted in whole and before in starts and after in ends


def _read_edges(block: Block, max_chunk_tokens: int, *, at_end: bool = False) -> set[str]:
    """Return the texts, without white space, that may be missing at the start or end of a block.

    These are the empty text and, for a block that is longer than a chunk, runs of its sentences.
    """
    edges = {""}
    if not block.is_atomic and count_tokens(block.text) > max_chunk_tokens:
        for start, end in split_sentences(block.text):
            edges.add(_close_up(block.text[start:] if at_end else block.text[:end]))
    return edges


def _find_blocks(passage: Passage, parsed: ParsedDoc) -> list[Block]:
    """Return the blocks that lie on at least one of the passage's lines and have a text."""
    return [
        block
        for block in parsed.blocks
        if find_page_line(parsed.origins, block.start_line) <= passage.end_line
        and find_page_line(parsed.origins, block.end_line) >= passage.start_line
        and block.text.strip()
    ]


def name_flaw(passage: Passage, documents: Mapping[str, ParsedDoc]) -> str | None:
    """Return the reason why a passage cannot explain a term; None if nothing is wrong.

    The reason is `heading` for a passage of headings only, `code` if code makes up more than half
    of the passage, and `quiz` for a passage of a quiz or one that consists of questions.
    """
    parsed = documents.get(passage.doc_path)
    blocks = _find_blocks(passage, parsed) if parsed else []
    if parsed is None or not blocks:
        return None
    kinds = [block.text_kind for block in blocks]
    if all(kind is TextBlockKind.HEADING for kind in kinds):
        return TextBlockKind.HEADING.value
    code = sum(len(block.text) for block in blocks if block.text_kind is TextBlockKind.CODE)
    if code > _CODE_SHARE * sum(len(block.text) for block in blocks):
        return TextBlockKind.CODE.value
    text = passage.text.strip()
    sentences = [_EMPHASIS.sub("", text[start:end]) for start, end in split_sentences(text)]
    asks = all(sentence.endswith("?") for sentence in sentences)
    return "quiz" if asks or parsed.document.content_type in _QUIZZES else None


def defines(passage: Passage, case: DefinitionCase, documents: Mapping[str, ParsedDoc]) -> bool:
    """Return True if a passage contains the definition of a term, or lies in a defining section."""
    if _keep_words(case.definition) in _keep_words(passage.text):
        return True
    return any(
        first <= passage.start_line and passage.end_line <= last
        for place in case.places
        if place.doc_path == passage.doc_path and place.doc_path in documents
        for first, last in _find_lines(documents[place.doc_path].document, place)
    )


def _keep_words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} "


def _find_lines(document: Document, place: ExpectedSection) -> Iterator[tuple[int, float]]:
    """Yield the first and last line of each section of a document with the heading of a place.

    A section includes its subsections. A page's title stands only for the text before the next
    heading, because the rest of a page is about more than its title.
    """
    lines = [heading.line for heading in document.headings]
    titles = [at for at, heading in enumerate(document.headings) if heading.level == 1]
    if place.section_heading == document.title and not titles:
        yield 1, min(lines, default=float("inf")) - 1
    for at, heading in enumerate(document.headings):
        if (heading.text or document.title) == place.section_heading:
            level = 6 if heading.level == 1 else heading.level
            following = (one.line for one in document.headings[at + 1 :] if one.level <= level)
            yield heading.line, next(following, float("inf")) - 1


Asker: TypeAlias = "Callable[[Query], Answer]"


def evaluate_answers(
    golden: GoldenSet,
    ask: Asker,
    documents: Sequence[ParsedDoc],
    model: str | None = None,
    max_chunk_tokens: int = ChunkLimits().max_tokens,
) -> AnswersReport:
    """Ask every question, selected-text case and term of a golden set, and score the answers.

    If an answer or its model fails, the result records the message, and the run continues.
    Terms are only asked about if no model is used.

    Args:
        golden: The questions, their facts, the selected-text cases and the terms of the glossary.
        ask: Function that answers a query, such as `Assistant.answer`.
        documents: The parsed documents of the book, with which passages are checked.
        model: Name of the chat model that `ask` uses; None if it uses none.
        max_chunk_tokens: Largest size of a chunk of text. Longer blocks are quoted in parts.
    """
    pages = {str(parsed.document.doc_path): parsed for parsed in documents}
    questions = tuple(_ask(query, ask, pages, max_chunk_tokens) for query in golden.queries)
    selections = tuple(_ask_selection(case, ask) for case in golden.selected_text)
    # A model's answer quotes no passages, so that it is not asked about terms.
    asked = golden.definitions if model is None else ()
    terms = tuple(_ask_term(case, ask, pages) for case in asked)
    errors = [one.error for group in (questions, selections, terms) for one in group]

    def score(names_of: Callable[[AnswerResult], Iterable[str]]) -> dict[str, AnswerScores]:
        groups = group_by(questions, names_of)
        return {name: compute(AnswerScores, group) for name, group in groups.items()}

    return AnswersReport(
        model=model,
        overall=compute(AnswerScores, questions),
        halves=score(lambda result: [result.half]),
        categories=score(lambda result: [result.category]),
        selected_text=compute(SelectionScores, selections),
        definitions=compute(DefinitionScores, terms),
        written=compute(ModelScores, [one for one in questions if model and one.is_for_model]),
        passages=compute(PassageScores, [*questions, *selections]),
        failure_count=sum(error is not None for error in errors),
        questions=questions,
        selections=selections,
        terms=terms,
    )


def _try(ask: Asker, query: Query) -> tuple[Answer | None, dict[str, Any]]:
    """Return the answer, or None if the system failed, and the fields of its `Reply`."""
    try:
        given = ask(query)
        error = given.model_error
        answer = given if error is None else None  # quotes are no answers of the model
    except Exception as failure:  # noqa: BLE001  # any failure is recorded as a failed answer
        answer, error = None, name_error(failure)
    return answer, {
        "question": query.question,
        "kind": answer.kind.value if answer else None,
        "text": answer.text if answer else "",
        "passage_count": len(answer.passages) if answer else 0,
        "error": error,
    }


def _ask(
    query: GoldenQuery, ask: Asker, pages: Mapping[str, ParsedDoc], max_chunk_tokens: int
) -> AnswerResult:
    given, reply = _try(ask, Query(query.question))
    result = AnswerResult(
        query_id=query.id,
        category=query.category,
        half=query.half,
        answerable=bool(query.expected),
        first_is_right=False if query.expected else None,
        facts_missed=query.facts,
        **reply,
    )
    if given is None:
        return result
    written, grounded, cited = count_sentences(given)
    scored = replace(
        result,
        level=given.grounding.level.value,
        first_is_right=_starts_right(given, query.expected),
        broken_passages=find_broken_passages(given, pages, max_chunk_tokens),
        sentence_count=written,
        cited_count=cited,
        unsupported=_list_unsupported(given, written - grounded),
        notices=_list_notices(given),
    )
    if result.refused:  # the related sections that a refusal lists may match facts
        return scored
    found, missed = find_facts(query.facts, given.text)
    sections = tuple(dict.fromkeys(one.place for one in given.citations))
    return replace(scored, facts_found=found, facts_missed=missed, sections=sections)


def _starts_right(given: Answer, expected: Sequence[ExpectedSection]) -> bool | None:
    """Return True if the first quoted passage is from an expected section; None if none counts."""
    if not expected or given.kind is AnswerKind.GENERATED:
        return None
    if not given.passages:
        return False
    number = given.passages[0].number
    source = next(one for one in given.grounding.sources if one.number == number)
    place = SourcePlace(source.doc_path, source.headings)
    return any(hits_section(place, one) for one in expected)


def _list_notices(given: Answer) -> tuple[str, ...]:
    """Return the codes of the notices, with `model_declined` also for a refusal by the model."""
    declined = given.grounding.reason is Reason.MODEL_DECLINED
    return (*(notice.code for notice in given.notices), *(("model_declined",) if declined else ()))


def _list_unsupported(given: Answer, count: int) -> tuple[str, ...]:
    """Return the `count` sentences of a model that are in no source; `...` for an unknown one."""
    noted = {notice.code: notice.data for notice in given.notices}
    left = noted.get("sentences_dropped", noted.get("sentences_marked", {}))
    return (*left.get("sentences", ()), *["..."] * count)[:count]


def _ask_selection(case: SelectedTextCase, ask: Asker) -> SelectionAnswer:
    query = Query(
        case.question,
        mode=Mode.SELECTED_TEXT_ONLY,
        selected_text=case.selected_text,
        source_doc_path=case.doc_path,
        source_section=case.section_heading,
    )
    given, reply = _try(ask, query)
    shown = reply["text"].casefold()
    # The only source of an answer from a selection is the selection.
    sources = given.grounding.sources if given is not None else ()
    foreign = [one.text for one in sources if one.text.strip() != case.selected_text.strip()]
    return SelectionAnswer(
        case_id=case.id,
        relation=case.relation,
        leaks=(*(term for term in case.must_not_contain if term.casefold() in shown), *foreign),
        broken_passages=find_broken_selections(given, case.selected_text) if given else (),
        **reply,
    )


def _ask_term(case: DefinitionCase, ask: Asker, pages: Mapping[str, ParsedDoc]) -> DefinitionAnswer:
    given, reply = _try(ask, Query(f"What is {case.term}?"))
    main = given.passages[0] if given and given.passages else None
    return DefinitionAnswer(
        term=case.term,
        passage=main.text if main else "",
        place=f"{main.doc_path}:{main.start_line}" if main else "",
        defined=main is not None and defines(main, case, pages),
        flaw=name_flaw(main, pages) if main else None,
        **reply,
    )
