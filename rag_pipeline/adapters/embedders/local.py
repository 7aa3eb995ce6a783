"""The embedded models: all-MiniLM-L6-v2, as published and trained further on textbook questions.

ONNX Runtime runs them from this package's own data; they need no key and no download.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rag_pipeline.core.errors import ConfigurationError, EmbeddingError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage, QuestionVectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, Window

    IntVector: TypeAlias = NDArray[np.int64]
    Tokens: TypeAlias = tuple[FloatMatrix, IntVector, IntVector]
    """Vectors of a text's tokens, and where each token's characters begin and end."""

PUBLISHED: Final = "all-MiniLM-L6-v2"
TEXTBOOK: Final = "all-MiniLM-L6-v2-textbook"
"""The same model, trained further (docs/adr/0018 and 0019); the default."""

_WEIGHTS: Final = {
    PUBLISHED: ("model.onnx", "7df275c0f199c8cb02da07175e6f51e381004b25e6805eaf74b85e89391dad99"),
    TEXTBOOK: ("textbook.onnx", "f845cad2385423825713ef83fef9383b384470591aaeef1cb2f1fcbe14380cb3"),
}
"""File and SHA-256 of each model's weights."""

_DIM: Final = 384
_MAX_INPUT_TOKENS: Final = 254  # 256 positions, two of them special; more is slower and no better
_WINDOW_WORDS: Final = 4  # chosen by measurement, see docs/adr/0015
_LOADING: Final = threading.Lock()


class LocalEmbedder:
    """An `Embedder` on this machine's processors.

    Args:
        model: One of those above.
        workers: Inferences at a time; None for one a core.

    Raises:
        ConfigurationError: There is no such model.
    """

    def __init__(self, model: str = TEXTBOOK, *, workers: int | None = None) -> None:
        if model not in _WEIGHTS:
            problem = f"the local provider has no model {model}"
            hint = f"Leave it empty, set {' or '.join(_WEIGHTS)}, or OPENAI_API_KEY for a service's"
            raise ConfigurationError("EMBEDDING_MODEL", problem, hint)
        self._name = model
        self._workers = workers or os.cpu_count() or 1

    @property
    def model(self) -> EmbeddingModel:
        """MiniLM with the hash of its weights in the name: other weights are another space.

        So are windows made otherwise than from the whole text's token vectors (`late`).
        """
        _, digest = _WEIGHTS[self._name]
        name = f"{self._name}-int8-{digest[:8]}-late"
        return EmbeddingModel("local", name, _DIM, _MAX_INPUT_TOKENS, _WINDOW_WORDS)

    def load(self) -> None:
        """Load the model before its first use. The first use reports an error, if there is one."""
        with suppress(Exception):
            _get_model(self._name)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count word pieces."""
        encodings = _load_counter().encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts, each by an inference of its own; a text over the limit is cut by the model.

        A text's row is the same whatever stands beside it: activations are quantized by one scale
        an inference, so texts that shared one would move each other (cosine 0.99). A window is the
        mean of its words' token vectors of that inference; one behind the limit, or without a
        token, is the text's own row.
        """
        start = time.perf_counter()
        spans = windows or [()] * len(texts)
        rows = np.zeros((len(texts) + sum(map(len, spans)), _DIM), dtype=np.float32)
        if not texts:
            return rows, EmbeddingUsage()
        window_rows = np.cumsum([len(texts), *map(len, spans)])
        token_counts = self.count_tokens(texts)
        longest_first = sorted(range(len(texts)), key=lambda index: -token_counts[index])
        infer = partial(_infer, _get_model(self._name))
        # One inference a core: threads inside one inference wait for each other by spinning, which
        # doubles the time as soon as anything else runs on the machine. One text in each: 20% less
        # work than batches of 16 sorted by length, whose padding costs more than the batch saves.
        with ThreadPoolExecutor(self._workers) as workers:
            embedded = workers.map(
                lambda index: _embed(infer(texts[index]), spans[index]), longest_first
            )
            for index, vectors in zip(longest_first, embedded, strict=True):
                rows[index] = vectors[0]
                rows[window_rows[index] : window_rows[index + 1]] = vectors[1:]
        seconds = time.perf_counter() - start
        return rows, EmbeddingUsage(1, 0, sum(token_counts), seconds)

    def embed_query(self, text: str) -> FloatVector:
        """Embed a question; the same text as a passage has the same vector."""
        return self.embed_question(text).dense

    def embed_question(self, text: str) -> QuestionVectors:
        """Embed a question and its tokens, special ones left out; see `WindowEmbedder`."""
        tokens, starts, ends = _infer(_get_model(self._name), text)
        dense = _normalize(tokens.mean(axis=0, keepdims=True))
        written = starts < ends
        if not written.any():
            return QuestionVectors(dense[0], dense)
        spans = tuple(zip(starts[written].tolist(), ends[written].tolist(), strict=True))
        return QuestionVectors(dense[0], _normalize(tokens[written]), spans)


class _Model(NamedTuple):
    session: InferenceSession
    tokenizer: Tokenizer


def _embed(inferred: Tokens, windows: Sequence[Window]) -> FloatMatrix:
    """Unit rows from one inference: the mean of all tokens, as the model pools, and of each window.

    Special tokens have no characters, so they are in the first mean alone. Within a window each
    token counts alike, however long its vector.
    """
    tokens, starts, ends = inferred
    whole = tokens.mean(axis=0, keepdims=True)
    if not windows:
        return _normalize(whole)
    written = starts < ends
    units = tokens[written] / np.linalg.norm(tokens[written], axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((1, tokens.shape[1])), np.cumsum(units, axis=0)])
    words = np.array([word for window in windows for word in window])
    first = np.searchsorted(ends[written], words[:, 0], side="right")
    behind = np.maximum(np.searchsorted(starts[written], words[:, 1], side="left"), first)
    begins = np.cumsum([0, *map(len, windows[:-1])])
    rows = np.add.reduceat(sums[behind] - sums[first], begins, axis=0)
    counts = np.add.reduceat(behind - first, begins)
    rows[counts == 0] = whole
    return _normalize(np.concatenate([whole, rows]))


def _infer(model: _Model, text: str) -> Tokens:
    encoding = model.tokenizer.encode(text)
    ids = np.array([encoding.ids], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": ids * 0}
    (vectors,) = model.session.run(None, inputs)
    tokens: FloatMatrix = np.asarray(vectors)[0].astype(np.float64)
    starts, ends = np.array(encoding.offsets).T
    return tokens, starts, ends


def _normalize(rows: FloatMatrix) -> FloatMatrix:
    unit: FloatMatrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _model_dir() -> Path:
    return Path(str(files("rag_pipeline") / "data" / "minilm"))


@lru_cache(maxsize=1)
def _load_counter() -> Tokenizer:
    tokenizer = _load_tokenizer()
    tokenizer.no_truncation()
    return tokenizer


def _load_tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415  # time that a process without a model saves

    tokenizer = Tokenizer.from_file(str(_model_dir() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_INPUT_TOKENS + 2)
    return tokenizer


def _get_model(name: str) -> _Model:
    """Return the model; threads that come first together wait for one of them to load it."""
    with _LOADING:
        return _load_model(name)


@lru_cache(maxsize=1)  # a process embeds with one of them
def _load_model(name: str) -> _Model:
    """Load a model and check the hash of its weights.

    The parts are loaded at the same time, since hashing and ONNX Runtime do not hold Python's lock.
    """
    file, expected = _WEIGHTS[name]
    weights = _model_dir() / file
    with ThreadPoolExecutor(2) as loaders:
        session = loaders.submit(_load_session, weights)
        digest = loaders.submit(lambda: hashlib.sha256(weights.read_bytes()).hexdigest())
        tokenizer = _load_tokenizer()
    if digest.result() != expected:
        found = digest.result()[:8]
        message = f"{weights} is damaged (sha256 {found}...). Install the package again"
        raise EmbeddingError(message)
    return _Model(session.result(), tokenizer)


def _load_session(weights: Path) -> InferenceSession:
    import onnxruntime  # noqa: PLC0415  # time that a process without a model saves

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # see `embed_passages`
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
