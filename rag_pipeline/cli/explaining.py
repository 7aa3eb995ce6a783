"""Formatting of the reasons for an answer, for `rag-pipeline query --explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.cli.terminal import show_fields

if TYPE_CHECKING:
    from rag_pipeline.cli.records import QueryRecord
    from rag_pipeline.retrieval.models import ScoredChunk


def show_explanation(record: QueryRecord) -> str:
    """Format how a question was read and searched, and why it was answered or refused.

    The passages that were read are listed with their scores, best first.
    """
    found = record.explanation
    kind = f"{found.question_kind}: {found.subject}" if found.subject else found.question_kind
    fields: list[tuple[str, object]] = [("question kind", kind)]
    if found.search_question is not None:
        fields.append(("searched for", found.search_question))
    fields.append(("level", f"{record.level} ({record.reason})"))
    if found.confidence is not None:
        fields.append(("confidence", f"{found.confidence:.2f}"))
    if found.signals is not None:
        signals = found.signals
        fields += [
            ("  similarity", f"{signals.semantic:.2f} of the question to the nearest passage"),
            ("  words", f"{signals.support:.2f} of its least similar words to the passages"),
            ("  covered", f"{signals.cover:.0%} of its words in one passage"),
            ("  known", f"{signals.known:.0%} of its words in the book"),
            ("  searched", f"{signals.chunk_count} chunks"),
        ]
        if signals.standout is not None:
            apart = f"{signals.standout:.1f} deviations above unrelated questions"
            fields.append(("  stands out", apart))
    lines = ["Why this answer:", show_fields(fields)]
    if found.passages:
        lines += ["Passages that were quoted:", *(f"  {reasons}" for reasons in found.passages)]
    if record.chunks:
        lines.append("Passages that were read:")
        lines += [_describe(number, chunk) for number, chunk in enumerate(record.chunks, 1)]
    return "\n".join(lines)


def _describe(number: int, chunk: ScoredChunk) -> str:
    citation, scores = chunk.citation, chunk.channels
    place = citation.place
    if scores is None:
        return f"  {number}. {place}"
    return (
        f"  {number}. {place}: similarity {scores.dense:.2f}, of its parts {scores.windows:.2f}, "
        f"BM25 {scores.bm25:.1f}, {scores.lexical:.0%} of the words, rank score {scores.fused:.2f}"
    )
