"""The last stage of retrieval: build the results of a search and check the rules for results."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rag_pipeline.core.errors import ResultInvalidError
from rag_pipeline.core.ids import PointId, is_chunk_id
from rag_pipeline.core.payload import ChunkMetadata, read_metadata, read_text
from rag_pipeline.core.protocols import PointFilter, Reranker, VectorIndex
from rag_pipeline.core.rules import Fault, Rule, find_repeated, register_rule
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.retrieval.evidence import find_chunk_terms
from rag_pipeline.retrieval.models import (
    ChannelScores,
    Citation,
    ScoredChunk,
    name_edition,
    name_section,
)
from rag_pipeline.retrieval.open_index import Piece, section_of
from rag_pipeline.retrieval.ranking import scale_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rag_pipeline.core.models import TextBlock
    from rag_pipeline.retrieval.choosing import Chosen
    from rag_pipeline.retrieval.search import Search

RESULT_RULES: Final[list[Rule[Sequence[ScoredChunk]]]] = []
"""The rules that the results of every query must keep."""

_REQUIRED_FIELDS: Final = ("url", "title", "doc_path", "content_type", "content_hash")


def build_hits(
    search: Search, chosen: Chosen, chunks: Mapping[PointId, Piece]
) -> list[ScoredChunk]:
    """Return the chosen candidates of a search as scored chunks with citations, best first.

    Args:
        search: The search.
        chosen: Its chosen candidates.
        chunks: The chunks by the id of their point. Candidates without a chunk, because the point
            was deleted in the meantime, are left out.
    """
    terms = set(extract_terms(search.text))
    hits = []
    scores = scale_scores(chosen.hits, chosen.nearest)
    for ranked, score in zip(chosen.hits, scores, strict=True):
        candidate = ranked.candidate
        chunk = chunks.get(candidate.place.point_id)
        if chunk is None:
            continue
        metadata, text = chunk
        found_terms = find_chunk_terms(metadata.heading_breadcrumb, text)
        channels = ChannelScores(
            dense=candidate.dense,
            windows=candidate.windows,
            bm25=candidate.bm25,
            lexical=len(terms & found_terms) / len(terms) if terms else 0.0,
            fused=ranked.score,
        )
        citation = Citation(
            metadata.title,
            name_section(metadata),
            metadata.url,
            metadata.module,
            metadata.chapter,
            *name_edition(metadata),
            metadata.tabs,
        )
        hits.append(ScoredChunk(metadata.chunk_id, text, score, metadata, citation, channels))
    return hits


def rerank_hits(
    reranker: Reranker, question: str, hits: Sequence[ScoredChunk]
) -> list[ScoredChunk]:
    """Return the hits in the order of a reranker's scores, best first, with these scores.

    Hits with equal scores keep their order. After sorting, scores are limited to 0 to 1.

    Args:
        reranker: The model that scores each passage against the question.
        question: The question of the hits.
        hits: The hits to reorder.

    Raises:
        ResultInvalidError: The reranker did not return one finite score for each hit.
    """
    given = reranker.rerank(question, [hit.text for hit in hits])
    scores = [float(score) for score in given]  # NumPy numbers cannot be written as JSON
    if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
        finite = sum(map(math.isfinite, scores))
        raise ResultInvalidError(
            f"the reranker returned {len(scores)} scores ({finite} finite) for "
            f"{len(hits)} passages. It must return one finite score for each passage"
        )
    ranked = sorted(zip(hits, scores, strict=True), key=lambda scored: -scored[1])
    return [replace(hit, score=min(1.0, max(0.0, score))) for hit, score in ranked]


def widen_hits(
    index: VectorIndex, hits: Sequence[ScoredChunk], budget_tokens: int
) -> list[ScoredChunk]:
    """Return the hits with expanded text: each joined with its neighbours in the same section.

    Args:
        index: The collection to read the neighbours from.
        hits: The hits to expand; the result has the same order.
        budget_tokens: Maximum size of an expanded text, in cl100k_base tokens; see `_expand`.
    """
    sections: dict[str, list[Piece]] = {}
    paths = sorted({hit.metadata.doc_path for hit in hits})
    for point in index.scroll(PointFilter.any_of(doc_path=paths)) if paths else ():
        metadata = read_metadata(point.payload)
        sections.setdefault(_name_section(metadata), []).append(
            (metadata, read_text(point.payload))
        )
    for pieces in sections.values():
        pieces.sort(key=lambda piece: piece[0].chunk_index)
    widened = []
    for hit in hits:
        text, blocks = _expand(hit, sections.get(_name_section(hit.metadata), []), budget_tokens)
        widened.append(replace(hit, expanded_text=text, expanded_blocks=blocks))
    return widened


def _expand(
    hit: ScoredChunk, pieces: Sequence[Piece], budget_tokens: int
) -> tuple[str, tuple[TextBlock, ...]]:
    """Join the text of a hit with the neighbouring chunks of its section that fit the budget.

    The next and the previous neighbour are added in turn.

    Args:
        hit: The hit. Its text is returned unchanged if no neighbour fits.
        pieces: The chunks of its section, in reading order.
        budget_tokens: Maximum sum of the token counts of the joined chunks. Tokens in the overlap
            of two chunks count twice.

    Returns:
        The joined text, and the blocks of this text.
    """
    at = next((i for i, (piece, _) in enumerate(pieces) if piece.chunk_id == hit.chunk_id), None)
    if at is None:
        return hit.text, hit.metadata.blocks
    first, last, spent = at, at, hit.metadata.token_count
    grown = True
    while grown:
        grown = False
        for step in (1, -1):
            edge = last + 1 if step == 1 else first - 1
            if not 0 <= edge < len(pieces):
                continue
            added, known = pieces[edge][0], pieces[edge - step][0]
            is_next = added.chunk_index - known.chunk_index == step
            if spent + added.token_count > budget_tokens or not is_next:
                continue
            spent += added.token_count
            first, last = min(first, edge), max(last, edge)
            grown = True
    return join_pieces(pieces[first : last + 1])


def join_pieces(pieces: Sequence[Piece]) -> tuple[str, tuple[TextBlock, ...]]:
    """Join consecutive chunks into one text that contains the overlap of two chunks only once.

    Args:
        pieces: One or more chunks in reading order.

    Returns:
        The text and its blocks. A block that was cut between two overlapping chunks is whole again.
    """
    joined, blocks = pieces[0][1], list(pieces[0][0].blocks)
    last = _find_last(blocks, range(len(blocks)))
    for (before, _), (piece, text) in pairwise(pieces):
        overlap = 0
        if piece.start_byte < before.end_byte:
            longest = min(len(joined), len(text), before.end_byte - piece.start_byte)
            overlap = next((n for n in range(longest, 0, -1) if joined.endswith(text[:n])), 0)
        rest = text[overlap:]
        joined = joined if overlap else f"{joined}\n\n"
        fresh = overlap + len(rest) - len(rest.lstrip("\n"))
        last = _add_blocks(blocks, last, piece.blocks, fresh, len(joined) - overlap)
        joined += rest
    return joined, tuple(blocks)


def _find_last(blocks: Sequence[TextBlock], places: Sequence[int]) -> list[int]:
    """Return those places in a list of blocks whose block ends last."""
    end = max((blocks[at].end for at in places), default=0)
    return [at for at in places if blocks[at].end == end]


def _add_blocks(
    blocks: list[TextBlock], last: list[int], added: Sequence[TextBlock], fresh: int, shift: int
) -> list[int]:
    """Append the blocks of the next chunk to the blocks of the text that was joined so far.

    A block that begins in the overlap is merged into the last block of its kind in the joined text,
    if that block was cut there.

    Args:
        blocks: The blocks of the joined text, changed in place.
        last: The places of the blocks at the end of the joined text.
        added: The blocks of the next chunk, including those in the overlap.
        fresh: Offset in the next chunk's text at which the text after the overlap begins.
        shift: Number to add to an offset in the next chunk's text to get the joined text's.

    Returns:
        The places of the blocks at the end of the new joined text.
    """
    changed = []
    for block in added:
        if block.end <= fresh:
            continue
        end = block.end + shift
        cut = [at for at in last if at not in changed and blocks[at].kind is block.kind]
        if block.start < fresh and cut:
            changed.append(cut[-1])
            blocks[cut[-1]] = replace(blocks[cut[-1]], end=end, end_line=block.end_line)
        else:
            changed.append(len(blocks))
            blocks.append(replace(block, start=max(block.start, fresh) + shift, end=end))
    return _find_last(blocks, changed) or last


def _name_section(metadata: ChunkMetadata) -> str:
    return section_of(metadata.doc_path, metadata.anchor, metadata.section_heading, metadata.tabs)


def check_results(
    hits: Sequence[ScoredChunk], again: Sequence[ScoredChunk] | None = None
) -> dict[str, str]:
    """Check search results against each rule of `RESULT_RULES`.

    Args:
        hits: The results, best first.
        again: The results of the same query at a second run, which must be equal. None without a
            second run.

    Returns:
        The description of the first violation of each rule, by rule name in a fixed order. It is
        empty if the results keep the rule.
    """
    checks = {rule.name: next(rule.find(hits), Fault("")).detail for rule in RESULT_RULES}
    if again is not None:
        same = [(hit.chunk_id, hit.score) for hit in hits] == [
            (hit.chunk_id, hit.score) for hit in again
        ]
        checks["deterministic"] = "" if same else "a second run returned different results"
    return checks


@register_rule(RESULT_RULES, "No result scores higher than the result before it.")
def _rank_order(hits: Sequence[ScoredChunk]) -> Iterator[Fault]:
    for at in range(1, len(hits)):
        if hits[at].score > hits[at - 1].score:
            yield Fault(f"result {at + 1} scores higher than result {at}")


@register_rule(RESULT_RULES, "Every score is a number from 0 to 1.")
def _score_bounds(hits: Sequence[ScoredChunk]) -> Iterator[Fault]:
    for hit in hits:
        if not (math.isfinite(hit.score) and 0.0 <= hit.score <= 1.0):
            yield Fault(f"chunk {hit.chunk_id} has the score {hit.score}, not one from 0 to 1")


@register_rule(RESULT_RULES, "No chunk occurs twice in the results.")
def _unique_ids(hits: Sequence[ScoredChunk]) -> Iterator[Fault]:
    return find_repeated(hit.chunk_id for hit in hits)


@register_rule(RESULT_RULES, "Every result has a text, a valid id and a source.")
def _required_fields(hits: Sequence[ScoredChunk]) -> Iterator[Fault]:
    for hit in hits:
        metadata = hit.metadata
        required = {name: getattr(metadata, name) for name in _REQUIRED_FIELDS}
        for name, value in {"text": hit.text, **required}.items():
            if not value.strip():
                yield Fault(f"chunk {hit.chunk_id} has no {name}")
        if not is_chunk_id(hit.chunk_id) or hit.chunk_id != metadata.chunk_id:
            yield Fault(f"{hit.chunk_id!r:.40} is not the id of this chunk")
        if metadata.chunk_index < 0:
            yield Fault(f"chunk {hit.chunk_id} has the negative index {metadata.chunk_index}")


@register_rule(RESULT_RULES, "Every result has a valid URL.")
def _urls(hits: Sequence[ScoredChunk]) -> Iterator[Fault]:
    for hit in hits:
        if not _is_address(hit.citation.url):
            yield Fault(f"chunk {hit.chunk_id} has the invalid URL {hit.citation.url!r:.80}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    has_path = parts.path.startswith("/") and parts.scheme in {"", "http", "https"}
    return has_path and not any(char.isspace() for char in url)
