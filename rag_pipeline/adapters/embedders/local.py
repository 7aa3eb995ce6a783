"""Local embedding models: all-MiniLM-L6-v2, and a version fine-tuned on textbook questions.

ONNX Runtime runs the models from files in this package, so they need no key and no download.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from rag_pipeline.core.errors import ConfigurationError, EmbeddingError
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage, QuestionVectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, Window

    IntVector: TypeAlias = NDArray[np.int64]
    Tokens: TypeAlias = tuple[FloatMatrix, IntVector, IntVector]
    """Vectors of a text's tokens, and the start and end position of each token's characters."""

PUBLISHED: Final = "all-MiniLM-L6-v2"
TEXTBOOK: Final = "all-MiniLM-L6-v2-textbook"
"""The fine-tuned version (ADR 18 and ADR 19), which is the default."""

_WEIGHTS: Final = {
    PUBLISHED: ("model.onnx", "7df275c0f199c8cb02da07175e6f51e381004b25e6805eaf74b85e89391dad99"),
    TEXTBOOK: ("textbook.onnx", "f845cad2385423825713ef83fef9383b384470591aaeef1cb2f1fcbe14380cb3"),
}
"""File name and SHA-256 of each model's weights."""

_DIM: Final = 384
_MAX_INPUT_TOKENS: Final = 254  # 256 positions, two for special tokens; more is slower, not better
_WINDOW_WORDS: Final = 4  # chosen by measurement; see ADR 15
_COUNTED_CHARACTERS: Final = 10_000  # per piece, so that counting the tokens of a long text
_COUNTED_TOGETHER: Final = 64  # takes little memory
_WHITE_SPACE: Final = re.compile(r"\s")
_LOADING: Final = threading.Lock()


class LocalEmbedder:
    """An embedder that runs a MiniLM model on the CPU of this machine.

    Args:
        model: Name of the model, `PUBLISHED` or `TEXTBOOK`.
        workers: Number of texts that are embedded in parallel. If None, one per CPU core.

    Raises:
        ConfigurationError: There is no local model with this name.
    """

    def __init__(self, model: str = TEXTBOOK, *, workers: int | None = None) -> None:
        if model not in _WEIGHTS:
            problem = f"the local provider has no model {model}"
            remedy = (
                f"Leave it empty, set it to {' or '.join(_WEIGHTS)}, or set OPENAI_API_KEY to use "
                "a model of OpenAI"
            )
            raise ConfigurationError("EMBEDDING_MODEL", problem, remedy)
        self._name = model
        self._workers = workers or os.cpu_count() or 1

    @property
    def model(self) -> EmbeddingModel:
        """The embedding model; its name contains the beginning of the SHA-256 of the weights.

        Vectors made with different weights are therefore never compared. The suffix `late` says
        that the vector of a window (a group of words) is computed from the token vectors of the
        whole text.
        """
        _, digest = _WEIGHTS[self._name]
        name = f"{self._name}-int8-{digest[:8]}-late"
        return EmbeddingModel("local", name, _DIM, _MAX_INPUT_TOKENS, _WINDOW_WORDS)

    def load(self) -> None:
        """Load the model now, so that its first use does not have to wait.

        An error is ignored here, because the first use of the model raises it again.
        """
        with suppress(Exception):  # whatever it is, the first use raises it again
            _get_model(self._name)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of word pieces of each text, without special tokens."""
        counter = _load_counter()
        counts = [0] * len(texts)
        pieces = [(number, piece) for number, text in enumerate(texts) for piece in _cut(text)]
        for start in range(0, len(pieces), _COUNTED_TOGETHER):
            batch = pieces[start : start + _COUNTED_TOGETHER]
            encodings = counter.encode_batch_fast(
                [piece for _, piece in batch], add_special_tokens=False
            )
            for (number, _), encoding in zip(batch, encodings, strict=True):
                counts[number] += len(encoding.ids)
        return counts

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        """Embed texts and their windows (groups of words), one inference per text.

        A text's vector does not depend on the other texts. The model quantizes activations with one
        scale per inference, so texts in the same inference would change each other's vectors
        (cosine 0.99). What exceeds the token limit of a text is ignored. A window's vector is the
        mean of its words' token vectors in the inference of the whole text. A window without
        tokens, or after the token limit, gets the vector of the text.

        Args:
            texts: Texts to embed.
            windows: For each text, its windows as character spans. Empty for no windows.

        Returns:
            A float32 matrix with rows of unit length: one per text in order, then one per window,
            text by text. The second value is the usage: tokens and seconds, counted as one request.

        Raises:
            EmbeddingError: The weights of the model are damaged.
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
        # Each core runs its own inference: threads within one inference wait for each other in busy
        # loops, which doubles the time as soon as anything else runs on the machine. One text per
        # inference is 20% less work than batches of 16 sorted by length, because padding costs more
        # than batching saves.
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
        """Return the unit vector of a question. A passage of the same text has the same vector."""
        return self.embed_question(text).dense

    def embed_question(self, text: str) -> QuestionVectors:
        """Embed a question as a whole, and each of its tokens except the special ones.

        If a question has no other tokens, the only token vector in the result is the vector of the
        whole question.
        """
        tokens, starts, ends = _infer(_get_model(self._name), text)
        dense = _normalize(tokens.mean(axis=0, keepdims=True))
        written = starts < ends
        if not written.any():
            return QuestionVectors(dense[0], dense)
        spans = tuple(zip(starts[written].tolist(), ends[written].tolist(), strict=True))
        return QuestionVectors(dense[0], _normalize(tokens[written]), spans)


def find_browser_files(model: EmbeddingModel) -> tuple[Path, Path] | None:
    """Return the files that a browser needs to run a local model: its graph and its weights.

    Returns:
        None if the model is not one of the local models.
    """
    for name, (file, _) in _WEIGHTS.items():
        if LocalEmbedder(name, workers=1).model.fingerprint == model.fingerprint:
            weights = _model_dir() / file
            return weights.with_stem(f"{weights.stem}_browser"), weights
    return None


def read_word_pieces() -> list[str]:
    """Return the word pieces of the local models' vocabulary in the order of their ids."""
    vocabulary: dict[str, int] = _load_tokenizer().get_vocab()
    return sorted(vocabulary, key=lambda piece: vocabulary[piece])


def _cut(text: str) -> list[str]:
    """Cut a long text before white space into pieces of about 10,000 characters.

    White space always ends a token, so the pieces have as many tokens as the text.
    """
    cuts = [0]
    while len(text) - cuts[-1] > _COUNTED_CHARACTERS:
        space = _WHITE_SPACE.search(text, cuts[-1] + _COUNTED_CHARACTERS)
        if space is None:
            break
        cuts.append(space.start())
    return [text[start:end] for start, end in pairwise([*cuts, len(text)])]


class _Model(NamedTuple):
    session: InferenceSession
    tokenizer: Tokenizer


def _embed(inferred: Tokens, windows: Sequence[Window]) -> FloatMatrix:
    """Return the unit vectors of a text and its windows from the token vectors of one inference.

    Row 0 is the text: the mean of all tokens, special tokens included, as the model expects. Each
    further row is a window: the mean of its tokens, which are scaled to unit length first, so that
    all tokens count the same. A window without tokens gets the vector of row 0.
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
    end = np.maximum(np.searchsorted(starts[written], words[:, 1], side="left"), first)
    begins = np.cumsum([0, *map(len, windows[:-1])])
    rows = np.add.reduceat(sums[end] - sums[first], begins, axis=0)
    counts = np.add.reduceat(end - first, begins)
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
    from tokenizers import Tokenizer  # noqa: PLC0415  # slow import, needed only with a model

    tokenizer = Tokenizer.from_file(str(_model_dir() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_INPUT_TOKENS + 2)
    return tokenizer


def _get_model(name: str) -> _Model:
    """Return a local model by name. The first call loads it while other threads wait."""
    with _LOADING:
        return _load_model(name)


@lru_cache(maxsize=len(_WEIGHTS))  # selected texts may use another model than the book
def _load_model(name: str) -> _Model:
    """Load a model's weights and tokenizer, and check the SHA-256 of the weights.

    Loading and hashing run in parallel, because both release Python's global interpreter lock.

    Raises:
        EmbeddingError: The file of weights is damaged.
    """
    file, expected = _WEIGHTS[name]
    weights = _model_dir() / file
    with ThreadPoolExecutor(2) as loaders:
        session = loaders.submit(_load_session, weights)
        digest = loaders.submit(lambda: hashlib.sha256(weights.read_bytes()).hexdigest())
        tokenizer = _load_tokenizer()
    if digest.result() != expected:
        found = digest.result()[:8]
        message = f"{weights} is damaged (SHA-256 {found}...). Install rag-pipeline again"
        raise EmbeddingError(message)
    return _Model(session.result(), tokenizer)


def _load_session(weights: Path) -> InferenceSession:
    import onnxruntime  # noqa: PLC0415  # slow import, needed only with a model

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # see the comment in `embed_passages`
    options.inter_op_num_threads = 1
    # Texts differ in length, so a plan or a pool of memory for each length would only grow.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
