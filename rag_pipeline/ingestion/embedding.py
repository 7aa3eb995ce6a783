"""Embedding of chunks: each exact text once per model, long texts and sentence windows included.

Belongs here: what is embedded and what is reused. Talking to a model or service: adapters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import ChunkVectors, EmbeddingUsage
from rag_pipeline.core.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import Chunk, EmbeddingModel, FloatMatrix, FloatVector
    from rag_pipeline.core.ports import Embedder, EmbeddingCache, WindowEmbedder

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """Vectors of chunks, in their order, and what was done for them.

    Attributes:
        vectors: One for each chunk.
        embedded_hashes: Text hashes that the model was asked for.
        usage: What that cost; nothing where all was reused.
        windowed_chunk_ids: Chunks over the model's input limit, embedded as the mean of their
            parts.
    """

    vectors: tuple[ChunkVectors, ...]
    embedded_hashes: frozenset[str]
    usage: EmbeddingUsage
    windowed_chunk_ids: tuple[str, ...]


def embed_chunks(
    chunks: Sequence[Chunk], embedder: Embedder, cache: EmbeddingCache
) -> EmbeddedChunks:
    """Embed chunks, asking the model only for texts that it has not embedded before.

    The text embedded is `chunk.embedding_text`; the sentence windows are of `chunk.text`, which it
    ends with. New vectors are in the cache when this returns.

    Args:
        chunks: Any number, of one document or many; equal texts are embedded once.
        embedder: Asked for all new texts in one call, so that it can batch them.
        cache: Looked up by SHA-256 of the embedding text and the model's fingerprint.

    Raises:
        EmbeddingServiceError: The service failed, retries spent; nothing of this call is kept.
        EmbeddingDimensionError: A vector is of a wrong length or not finite.
    """
    model = embedder.model
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    known = cache.get_many(model.fingerprint, sorted(set(hashes)))
    missing: dict[str, Chunk] = {}
    for text_hash, chunk in zip(hashes, chunks, strict=True):
        if text_hash not in known:
            missing.setdefault(text_hash, chunk)
    windowed: frozenset[str] = frozenset()
    usage = EmbeddingUsage()
    if missing:
        fresh, usage, windowed = _embed_missing(missing, embedder)
        cache.put_many(model.fingerprint, fresh)
        known |= fresh
    return EmbeddedChunks(
        vectors=tuple(known[text_hash] for text_hash in hashes),
        embedded_hashes=frozenset(missing),
        usage=usage,
        windowed_chunk_ids=tuple(
            chunk.chunk_id
            for chunk, text_hash in zip(chunks, hashes, strict=True)
            if text_hash in windowed
        ),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one text is embedded as: whole, or in parts within the limit; spans within each part."""

    parts: tuple[str, ...]
    windows: tuple[tuple[_Span, ...], ...]


def _embed_missing(
    missing: dict[str, Chunk], embedder: Embedder
) -> tuple[dict[str, ChunkVectors], EmbeddingUsage, frozenset[str]]:
    plans = _plan_texts(list(missing.values()), embedder)
    texts = [text for plan in plans for text in plan.parts]
    windows = [spans for plan in plans for spans in plan.windows]
    if embedder.model.window_tokens is None:
        rows, usage = embedder.embed_passages(texts)
    else:
        rows, usage = cast("WindowEmbedder", embedder).embed_passages(texts, windows)
    _check_rows(rows, len(texts) + sum(map(len, windows)), embedder.model)
    fresh: dict[str, ChunkVectors] = {}
    part, window = 0, len(texts)
    for text_hash, plan in zip(missing, plans, strict=True):
        parts = rows[part : part + len(plan.parts)]
        part += len(parts)
        own = rows[window : window + sum(map(len, plan.windows))]
        window += len(own)
        dense = parts[0] if len(parts) == 1 else _unit_mean(parts)
        fresh[text_hash] = ChunkVectors(dense, own if len(own) else parts)
    windowed = frozenset(
        text_hash for text_hash, plan in zip(missing, plans, strict=True) if len(plan.parts) > 1
    )
    return fresh, usage, windowed


def _plan_texts(chunks: Sequence[Chunk], embedder: Embedder) -> list[_Plan]:
    limit, window_tokens = embedder.model.max_input_tokens, embedder.model.window_tokens
    totals = embedder.count_tokens([chunk.embedding_text for chunk in chunks])
    plans = []
    for chunk, total in zip(chunks, totals, strict=True):
        text = chunk.embedding_text
        parts: tuple[_Span, ...] = ((0, len(text)),)
        if total > limit:
            parts = cut_windows(text, limit, embedder)
        windows: list[tuple[_Span, ...]] = [()] * len(parts)
        if window_tokens is not None and total > window_tokens:
            # Headings and lead-in stand before the text: windows see them, but do not hold them.
            body = len(text) - len(chunk.text)
            for place, (start, end) in enumerate(parts):
                first = max(start, body)
                spans = cut_windows(text[first:end], window_tokens, embedder, overlap=True)
                windows[place] = tuple(_shift(span, first - start) for span in spans)
        plans.append(_Plan(tuple(text[start:end] for start, end in parts), tuple(windows)))
    return plans


def cut_windows(
    text: str, max_tokens: int, embedder: Embedder, *, overlap: bool = False
) -> tuple[_Span, ...]:
    """Spans of runs of whole sentences within a number of the model's tokens, in order.

    Every character but white space is in a window, and none begins or ends with white space; a
    single sentence over the limit is cut at words, and a single word over it at characters.

    Args:
        text: White space alone has no windows.
        max_tokens: At least 1.
        embedder: Counts the tokens.
        overlap: Begin each window with the last sentence of the one before, where both fit.
    """
    windows: list[_Span] = []
    current: list[tuple[_Span, int]] = []
    for span, count in _cut_pieces(text, max_tokens, embedder):
        if current and sum(tokens for _, tokens in current) + count > max_tokens:
            windows.append((current[0][0][0], current[-1][0][1]))
            fits = overlap and len(current) > 1 and current[-1][1] + count <= max_tokens
            current = current[-1:] if fits else []
        current.append((span, count))
    if current:
        windows.append((current[0][0][0], current[-1][0][1]))
    return tuple(windows)


def _cut_pieces(text: str, max_tokens: int, embedder: Embedder) -> list[tuple[_Span, int]]:
    """Sentences, those over the limit cut, with the tokens of each and of the gap behind it."""
    sentences = split_sentences(text)
    following = [start for start, _ in sentences[1:]] + [len(text)]
    counts = embedder.count_tokens(
        [text[start:after] for (start, _), after in zip(sentences, following, strict=False)]
    )
    pieces: list[tuple[_Span, int]] = []
    for (start, end), count in zip(sentences, counts, strict=True):
        cut = _cut_long_sentence(text[start:end], count, max_tokens, embedder)
        pieces.extend((_shift(span, start), tokens) for span, tokens in cut)
    return pieces


def _cut_long_sentence(
    sentence: str, count: int, max_tokens: int, embedder: Embedder
) -> list[tuple[_Span, int]]:
    """Halve at the white space nearest the middle, or at the middle, until every piece fits."""
    if count <= max_tokens or len(sentence) <= 1:
        return [((0, len(sentence)), min(count, max_tokens))]
    middle = len(sentence) // 2
    before, after = sentence.rfind(" ", 1, middle + 1), sentence.find(" ", middle, -1)
    spaces = [place for place in (before, after) if place > 0]
    cut = min(spaces, key=lambda place: abs(place - middle)) if spaces else middle
    pieces: list[tuple[_Span, int]] = []
    for start, half in ((0, sentence[:cut].rstrip()), (cut, sentence[cut:])):
        begin = start + len(half) - len(half.lstrip())
        half_count = embedder.count_tokens([half])[0]
        cuts = _cut_long_sentence(half.lstrip(), half_count, max_tokens, embedder)
        pieces.extend((_shift(span, begin), tokens) for span, tokens in cuts)
    return pieces


def _shift(span: _Span, offset: int) -> _Span:
    return span[0] + offset, span[1] + offset


def _unit_mean(rows: FloatMatrix) -> FloatVector:
    mean: FloatVector = rows.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    if norm == 0.0:
        mean, norm = rows[0], 1.0
    return (mean / norm).astype(np.float32)


def _check_rows(rows: FloatMatrix, count: int, model: EmbeddingModel) -> None:
    expected = f"{count} vectors of {model.dim} finite numbers"
    if rows.shape != (count, model.dim):
        raise EmbeddingDimensionError(model.model, expected, f"an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise EmbeddingDimensionError(model.model, expected, "numbers that are not finite")
