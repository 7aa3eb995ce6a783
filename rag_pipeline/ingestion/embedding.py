"""Embedding of chunks: each exact text once per model, long texts and windows of words included.

Belongs here: what is embedded and what is reused. Talking to a model or service: adapters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.sentences import split_sentences
from rag_pipeline.core.terms import find_content_words
from rag_pipeline.core.vectors import ChunkVectors, EmbeddingUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import Chunk
    from rag_pipeline.core.protocols.embedding import Embedder, WindowEmbedder
    from rag_pipeline.core.protocols.state import EmbeddingCache
    from rag_pipeline.core.vectors import EmbeddingModel, FloatMatrix, FloatVector, Window

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

    The text embedded is `chunk.embedding_text`, and so are its windows. New vectors are in the
    cache when this returns.

    Args:
        chunks: Any number, of one document or many; equal texts are embedded once.
        embedder: Asked for all new texts in one call, so that it can batch them.
        cache: Looked up by SHA-256 of the embedding text and the model's fingerprint; an entry that
            the model cannot have given is embedded anew.

    Raises:
        EmbeddingServiceError: The service failed, retries spent; nothing of this call is kept.
        EmbeddingDimensionError: A vector is of a wrong length or not finite.
    """
    model = embedder.model
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    kept = cache.get_many(model.fingerprint, sorted(set(hashes)))
    known = {text_hash: found for text_hash, found in kept.items() if _is_sound(found, model)}
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
    """What one text is embedded as: whole, or in parts within the limit; windows of each part."""

    parts: tuple[str, ...]
    windows: tuple[tuple[Window, ...], ...]


def _embed_missing(
    missing: dict[str, Chunk], embedder: Embedder
) -> tuple[dict[str, ChunkVectors], EmbeddingUsage, frozenset[str]]:
    plans = _plan_texts(list(missing.values()), embedder)
    texts = [text for plan in plans for text in plan.parts]
    windows = [spans for plan in plans for spans in plan.windows]
    if embedder.model.window_words is None:
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
    limit, window_words = embedder.model.max_input_tokens, embedder.model.window_words
    totals = embedder.count_tokens([chunk.embedding_text for chunk in chunks])
    plans = []
    for chunk, total in zip(chunks, totals, strict=True):
        parts: tuple[str, ...] = (chunk.embedding_text,)
        if total > limit:
            spans = cut_parts(chunk.embedding_text, limit, embedder)
            parts = tuple(chunk.embedding_text[start:end] for start, end in spans)
        windows = [group_words(part, window_words) if window_words else () for part in parts]
        plans.append(_Plan(parts, tuple(windows)))
    return plans


def group_words(text: str, count: int) -> tuple[Window, ...]:
    """Windows of so many words each that are no stop words, in order; the last may have fewer."""
    words = find_content_words(text)
    return tuple(tuple(words[at : at + count]) for at in range(0, len(words), count))


def cut_parts(text: str, max_tokens: int, embedder: Embedder) -> tuple[_Span, ...]:
    """Spans of runs of whole sentences within a number of the model's tokens, in order.

    Every character but white space is in a part, and none begins or ends with white space; a
    single sentence over the limit is cut at words, and a single word over it at characters.

    Args:
        text: White space alone has no parts.
        max_tokens: At least 1.
        embedder: Counts the tokens.
    """
    parts: list[_Span] = []
    total = 0
    for (start, end), count in _cut_pieces(text, max_tokens, embedder):
        if parts and total + count <= max_tokens:
            parts[-1] = (parts[-1][0], end)
            total += count
        else:
            parts.append((start, end))
            total = count
    return tuple(parts)


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


def _is_sound(vectors: ChunkVectors, model: EmbeddingModel) -> bool:
    rows = (vectors.dense[np.newaxis, :], vectors.windows)
    return all(matrix.shape[1] == model.dim and np.isfinite(matrix).all() for matrix in rows)


def _check_rows(rows: FloatMatrix, count: int, model: EmbeddingModel) -> None:
    expected = f"{count} vectors of {model.dim} finite numbers"
    if rows.shape != (count, model.dim):
        raise EmbeddingDimensionError(model.model, expected, f"an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise EmbeddingDimensionError(model.model, expected, "numbers that are not finite")
