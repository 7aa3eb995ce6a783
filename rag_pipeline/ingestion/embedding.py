"""Embedding of chunks: each exact text once per model, long texts and sentence windows included.

Belongs here: what is embedded and what is reused. Talking to a model or service: adapters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import ChunkVectors, EmbeddingUsage
from rag_pipeline.core.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import Chunk, EmbeddingModel, FloatMatrix, FloatVector
    from rag_pipeline.core.ports import Embedder, EmbeddingCache

_PREFIX_SHARE = 3  # a heading may take at most a third of a window; longer ones are left out


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """Vectors of chunks, in their order, and what was done for them.

    Attributes:
        vectors: One for each chunk.
        embedded_hashes: Text hashes that the model was asked for.
        usage: What that cost; nothing where all was reused.
        windowed_chunk_ids: Chunks over the model's input limit, embedded as the mean of their
            windows.
    """

    vectors: tuple[ChunkVectors, ...]
    embedded_hashes: frozenset[str]
    usage: EmbeddingUsage
    windowed_chunk_ids: tuple[str, ...]


def embed_chunks(
    chunks: Sequence[Chunk], embedder: Embedder, cache: EmbeddingCache
) -> EmbeddedChunks:
    """Embed chunks, asking the model only for texts that it has not embedded before.

    The text embedded is `chunk.embedding_text`; `chunk.text` is cut into sentence windows where the
    model wants them.
    New vectors are in the cache when this returns.

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
class _Passages:
    """What one text is embedded as: whole or in parts within the limit, and its windows."""

    parts: tuple[str, ...]
    windows: tuple[str, ...]


def _embed_missing(
    missing: dict[str, Chunk], embedder: Embedder
) -> tuple[dict[str, ChunkVectors], EmbeddingUsage, frozenset[str]]:
    plans = _plan_passages(list(missing.values()), embedder)
    passages = [text for plan in plans for text in (*plan.parts, *plan.windows)]
    rows, usage = embedder.embed_passages(passages)
    _check_rows(rows, len(passages), embedder.model)
    fresh: dict[str, ChunkVectors] = {}
    position = 0
    for text_hash, plan in zip(missing, plans, strict=True):
        parts = rows[position : position + len(plan.parts)]
        position += len(plan.parts)
        windows = rows[position : position + len(plan.windows)]
        position += len(plan.windows)
        dense = parts[0] if len(plan.parts) == 1 else _unit_mean(parts)
        fresh[text_hash] = ChunkVectors(dense, windows if len(plan.windows) else parts)
    windowed = frozenset(
        text_hash for text_hash, plan in zip(missing, plans, strict=True) if len(plan.parts) > 1
    )
    return fresh, usage, windowed


def _plan_passages(chunks: Sequence[Chunk], embedder: Embedder) -> list[_Passages]:
    limit, window_tokens = embedder.model.max_input_tokens, embedder.model.window_tokens
    totals = embedder.count_tokens([chunk.embedding_text for chunk in chunks])
    plans = []
    for chunk, total in zip(chunks, totals, strict=True):
        parts: tuple[str, ...] = (chunk.embedding_text,)
        if total > limit:
            parts = cut_windows(chunk.embedding_text, limit, embedder)
        windows: tuple[str, ...] = ()
        if window_tokens is not None and total > window_tokens:
            prefix_tokens = embedder.count_tokens([chunk.section_heading])[0]
            prefix = chunk.section_heading if prefix_tokens * _PREFIX_SHARE <= window_tokens else ""
            room = window_tokens - (prefix_tokens if prefix else 0)
            cut = cut_windows(chunk.text, room, embedder, overlap=True)
            windows = tuple(f"{prefix}\n{text}" if prefix else text for text in cut)
        plans.append(_Passages(parts, windows))
    return plans


def cut_windows(
    text: str, max_tokens: int, embedder: Embedder, *, overlap: bool = False
) -> tuple[str, ...]:
    """Cut a text into runs of whole sentences within a number of the model's tokens.

    Every character but white space is in a window; a single sentence over the limit is cut at
    words, and a single word
    over it at characters.

    Args:
        text: Not empty.
        max_tokens: At least 1.
        embedder: Counts the tokens.
        overlap: Begin each window with the last sentence of the one before, where both fit.
    """
    sentences = [text[start:end] for start, end in split_sentences(text)] or [text]
    counts = embedder.count_tokens(sentences)
    pieces: list[tuple[str, int]] = []
    for sentence, count in zip(sentences, counts, strict=True):
        if count <= max_tokens:
            pieces.append((sentence, count))
        else:
            pieces.extend(_cut_long_sentence(sentence, count, max_tokens, embedder))
    windows: list[str] = []
    current: list[tuple[str, int]] = []
    for piece in pieces:
        if current and sum(count for _, count in current) + piece[1] > max_tokens:
            windows.append(" ".join(sentence for sentence, _ in current))
            carried = current[-1]
            fits = overlap and len(current) > 1 and carried[1] + piece[1] <= max_tokens
            current = [carried] if fits else []
        current.append(piece)
    windows.append(" ".join(sentence for sentence, _ in current))
    return tuple(windows)


def _cut_long_sentence(
    sentence: str, count: int, max_tokens: int, embedder: Embedder
) -> list[tuple[str, int]]:
    """Halve at the white space nearest the middle, or at the middle, until every piece fits."""
    if count <= max_tokens or len(sentence) <= 1:
        return [(sentence, min(count, max_tokens))]
    middle = len(sentence) // 2
    before, after = sentence.rfind(" ", 1, middle + 1), sentence.find(" ", middle, -1)
    spaces = [place for place in (before, after) if place > 0]
    cut = min(spaces, key=lambda place: abs(place - middle)) if spaces else middle
    halves = [half for half in (sentence[:cut].strip(), sentence[cut:].strip()) if half]
    pieces: list[tuple[str, int]] = []
    for half, half_count in zip(halves, embedder.count_tokens(halves), strict=True):
        pieces.extend(_cut_long_sentence(half, half_count, max_tokens, embedder))
    return pieces


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
