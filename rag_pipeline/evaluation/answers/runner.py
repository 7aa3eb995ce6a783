"""Run a golden set through an assistant, and score the answers as a reader would see them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_pipeline.answering import AnswerKind
from rag_pipeline.answering.writing.support import measure_support
from rag_pipeline.core.models import ChunkLimits
from rag_pipeline.evaluation.answers.passages import (
    defines,
    find_broken_passages,
    find_broken_selections,
    name_flaw,
)
from rag_pipeline.evaluation.answers.records import (
    ANSWERS_VERSION,
    AnswerResult,
    AnswersReport,
    DefinitionAnswer,
    Memory,
    SelectionAnswer,
)
from rag_pipeline.evaluation.answers.scoring import (
    begins_dangling,
    count_words,
    find_facts,
    score_answers,
    score_by,
    score_definitions,
    score_latency,
    score_passages,
    score_selections,
)
from rag_pipeline.evaluation.fingerprint import hash_parts
from rag_pipeline.evaluation.memory import read_peak_mb, read_resident_mb
from rag_pipeline.evaluation.runner import name_error
from rag_pipeline.retrieval import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.answering import Answer
    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.evaluation.golden_set import (
        DefinitionCase,
        GoldenQuery,
        GoldenSet,
        SelectedTextCase,
    )

    Asker = Callable[[Query], Answer]


def evaluate_answers(
    golden: GoldenSet,
    ask: Asker,
    documents: Sequence[ParsedDoc],
    model: str | None = None,
    memory_before_mb: float | None = None,
    max_chunk_tokens: int = ChunkLimits().max_tokens,
) -> AnswersReport:
    """Ask every question, selected-text case and term of a golden set, and score the answers.

    If an answer fails with an exception, the result records its message, and the run continues.
    Terms are only asked about if no model is used.

    Args:
        golden: The questions, their facts, the selected-text cases and the terms of the glossary.
        ask: Function that answers a query, such as `Assistant.answer`.
        documents: The parsed documents of the book, with which passages are checked.
        model: Name of the chat model that `ask` uses; None if it uses none.
        memory_before_mb: Resident memory before the first access to the collection, or None.
        max_chunk_tokens: Largest size of a chunk of text. Longer blocks are quoted in parts.
    """
    pages = {str(parsed.document.doc_path): parsed for parsed in documents}
    questions = tuple(_ask(query, ask, pages, max_chunk_tokens) for query in golden.queries)
    selections = tuple(_ask_selection(case, ask) for case in golden.selected_text)
    # A model's answer quotes no passages, so that it is not asked about terms.
    asked = golden.definitions if model is None else ()
    terms = tuple(_ask_term(case, ask, pages) for case in asked)
    now_mb, before_mb = read_resident_mb(), memory_before_mb
    growth_mb = None if now_mb is None or before_mb is None else now_mb - before_mb
    errors = [one.error for group in (questions, selections, terms) for one in group]
    return AnswersReport(
        answers_version=ANSWERS_VERSION,
        created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        model=model,
        facts_version=hash_parts(repr((one.id, one.question, one.facts)) for one in golden.queries),
        overall=score_answers(questions),
        halves=score_by(questions, lambda result: result.half),
        categories=score_by(questions, lambda result: result.category),
        selected_text=score_selections(selections),
        definitions=score_definitions(terms),
        whole=score_passages([*questions, *selections]),
        memory=Memory(growth_mb, read_peak_mb()),
        latency_ms=score_latency(questions),
        failure_count=sum(error is not None for error in errors),
        questions=questions,
        selections=selections,
        terms=terms,
    )


@dataclass(frozen=True, slots=True)
class _Reply:
    """An answer, or the error that came instead, and the time that it took."""

    answer: Answer | None
    error: str | None
    latency_ms: float

    @property
    def kind(self) -> str | None:
        return self.answer.kind.value if self.answer is not None else None

    @property
    def text(self) -> str:
        return self.answer.text if self.answer is not None else ""


def _try(ask: Asker, query: Query) -> _Reply:
    started = time.perf_counter()
    answer, error = None, None
    try:
        answer = ask(query)
    except Exception as failure:  # noqa: BLE001  # any failure is recorded as a failed answer
        error = name_error(failure)
    return _Reply(answer, error, (time.perf_counter() - started) * 1000)


def _ask(
    query: GoldenQuery, ask: Asker, pages: Mapping[str, ParsedDoc], max_chunk_tokens: int
) -> AnswerResult:
    reply = _try(ask, Query(query.question))
    given = reply.answer
    answered = given is not None and given.kind is not AnswerKind.REFUSED
    # The related sections that a refusal lists may match facts, but they answer nothing.
    found, missed = find_facts(query.facts, reply.text if answered else "")
    # Above each passage stands the place that it comes from, which is not part of the answer.
    passages = given.passages if given is not None else ()
    body = "\n\n".join(passage.text for passage in passages) or reply.text
    written = given is not None and given.kind is AnswerKind.GENERATED
    support = measure_support(given) if given is not None and written else ()
    return AnswerResult(
        query_id=query.id,
        question=query.question,
        category=query.category,
        half=query.half,
        answerable=bool(query.expected),
        kind=reply.kind,
        text=reply.text,
        facts_found=found,
        facts_missed=missed,
        sections=_name_sections(given) if given is not None and answered else (),
        word_count=count_words(body),
        dangling=answered and begins_dangling(body),
        passage_count=len(passages),
        broken_passages=find_broken_passages(given, pages, max_chunk_tokens)
        if given is not None
        else (),
        sentence_count=len(support),
        unsupported=tuple(
            ": ".join(filter(None, [one.sentence.text, ", ".join(one.missing)]))
            for one in support
            if not one.supported
        ),
        latency_ms=reply.latency_ms,
        error=reply.error,
    )


def _ask_selection(case: SelectedTextCase, ask: Asker) -> SelectionAnswer:
    query = Query(
        case.question,
        mode=Mode.SELECTED_TEXT_ONLY,
        selected_text=case.selected_text,
        source_doc_path=case.doc_path,
        source_section=case.section_heading,
    )
    reply = _try(ask, query)
    given, shown = reply.answer, reply.text.casefold()
    # The only source of an answer from a selection is the selection.
    sources = given.grounding.sources if given is not None else ()
    foreign = [one.text for one in sources if one.text.strip() != case.selected_text.strip()]
    return SelectionAnswer(
        case_id=case.id,
        question=case.question,
        relation=case.relation,
        kind=reply.kind,
        text=reply.text,
        leaks=(*(term for term in case.must_not_contain if term.casefold() in shown), *foreign),
        latency_ms=reply.latency_ms,
        error=reply.error,
        passage_count=len(given.passages) if given is not None else 0,
        broken_passages=find_broken_selections(given, case.selected_text) if given else (),
    )


def _ask_term(case: DefinitionCase, ask: Asker, pages: Mapping[str, ParsedDoc]) -> DefinitionAnswer:
    reply = _try(ask, Query(f"What is {case.term}?"))
    main = reply.answer.passages[0] if reply.answer and reply.answer.passages else None
    return DefinitionAnswer(
        term=case.term,
        kind=reply.kind,
        text=main.text if main else "",
        place=f"{main.doc_path}:{main.start_line}" if main else "",
        defined=main is not None and defines(main, case, pages),
        flaw=name_flaw(main, pages) if main else None,
        latency_ms=reply.latency_ms,
        error=reply.error,
    )


def _name_sections(answer: Answer) -> tuple[str, ...]:
    """Return the cited sections in the order of the sources, each once, as page title > heading."""
    return tuple(dict.fromkeys(entry.place for entry in answer.citations))
