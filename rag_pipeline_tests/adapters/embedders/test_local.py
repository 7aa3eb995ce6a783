"""Tests of the local models: known vectors, and vectors that depend only on their text."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.adapters.embedders import local as local_embedder
from rag_pipeline.adapters.embedders.local import PUBLISHED, TEXTBOOK, LocalEmbedder
from rag_pipeline.core.errors import ConfigurationError, EmbeddingError

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.vectors import Window

QUESTION = "What are the core principles of Physical AI?"
SENTENCE = "A robot that walks must keep its centre of mass above its support polygon."
COMMAND = "ros2 topic echo /joint_states"
FOREIGN = "Übung: ∂L/∂θ — naïve 機器人"
TEXTS = (QUESTION, SENTENCE, COMMAND, FOREIGN, "x", "gear " * 400, "", "  \n")

# The first components of vectors of the unquantized models (float32 weights, mean-pooled and
# normalized). They reveal a wrong graph, tokenizer or pooling. Quantization to 8 bits moves a
# component by up to 0.02, with components of about 0.05.
CANONICAL = {
    PUBLISHED: {
        QUESTION: (-0.02492, -0.01968, 0.03037, -0.03692, 0.00170, 0.03910),
        SENTENCE: (0.00060, 0.00751, -0.03256, -0.00702, 0.02011, -0.02538),
        COMMAND: (-0.00498, -0.01438, -0.10371, 0.05098, 0.10209, 0.00539),
        FOREIGN: (-0.06004, 0.03202, 0.05028, -0.02607, -0.04184, -0.05549),
    },
    TEXTBOOK: {
        QUESTION: (-0.02466, 0.00533, 0.06700, -0.02289, 0.01492, 0.05310),
        SENTENCE: (0.05908, -0.00255, -0.02470, 0.02213, 0.06506, -0.00424),
        COMMAND: (0.02668, -0.00878, -0.09967, 0.04672, 0.09955, 0.02347),
        FOREIGN: (-0.03623, 0.00902, -0.00913, -0.02272, -0.00824, -0.09473),
    },
}


@pytest.fixture(scope="module", params=[PUBLISHED, TEXTBOOK])
def embedder(request: pytest.FixtureRequest) -> LocalEmbedder:
    return LocalEmbedder(request.param)


@pytest.mark.parametrize("model", CANONICAL)
@pytest.mark.parametrize("text", [QUESTION, SENTENCE, COMMAND, FOREIGN])
def test_vectors_are_close_to_those_of_the_unquantized_model(model: str, text: str) -> None:
    vector = LocalEmbedder(model).embed_query(text)
    np.testing.assert_allclose(vector[:6], CANONICAL[model][text], atol=0.022)


def test_the_error_for_an_unknown_model_names_the_known_models() -> None:
    with pytest.raises(ConfigurationError, match=f"EMBEDDING_MODEL.*{PUBLISHED} or {TEXTBOOK}"):
        LocalEmbedder("all-mpnet-base-v2")


def test_each_model_has_its_own_fingerprint() -> None:
    assert LocalEmbedder(PUBLISHED).model.fingerprint != LocalEmbedder(TEXTBOOK).model.fingerprint


def test_texts_with_similar_meanings_have_similar_vectors(embedder: LocalEmbedder) -> None:
    rows, _ = embedder.embed_passages(
        [
            "How does a walking robot keep its balance?",
            SENTENCE,
            "Knead the dough and let it rest for an hour.",
        ]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_a_vector_depends_only_on_its_text(embedder: LocalEmbedder) -> None:
    together, _ = embedder.embed_passages(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        alone, _ = embedder.embed_passages([text])
        np.testing.assert_allclose(alone[0], row, atol=1e-6)
        np.testing.assert_allclose(embedder.embed_query(text), row, atol=1e-6)


def test_the_number_of_workers_does_not_change_the_vectors() -> None:
    one, _ = LocalEmbedder(workers=1).embed_passages(TEXTS)
    three, _ = LocalEmbedder(workers=3).embed_passages(TEXTS)
    np.testing.assert_allclose(one, three, atol=1e-6)


def test_rows_are_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    shuffled = [TEXTS[place] for place in (5, 2, 7, 0, 3, 6, 1, 4)]
    rows, _ = embedder.embed_passages(TEXTS)
    moved, _ = embedder.embed_passages(shuffled)
    for text, row in zip(shuffled, moved, strict=True):
        np.testing.assert_allclose(rows[TEXTS.index(text)], row, atol=1e-6)


def test_rows_are_float32_of_unit_length(embedder: LocalEmbedder) -> None:
    rows, usage = embedder.embed_passages(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.model.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert usage.tokens == sum(embedder.count_tokens(TEXTS))


def test_a_text_vector_equals_that_of_fastembed(
    embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from fastembed import TextEmbedding  # noqa: PLC0415  # takes a second, which other tests save
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415  # the same

    name = embedder.model.model.partition("-int8-")[0]
    file, _ = local_embedder._WEIGHTS[name]  # noqa: SLF001  # the reference runs the same weights
    folder = local_embedder._model_dir()  # noqa: SLF001  # from the same folder
    TextEmbedding.add_custom_model(
        model=f"reference/{name}",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="unused/offline"),
        dim=embedder.model.dim,
        model_file=file,
    )
    model = TextEmbedding(f"reference/{name}", specific_model_path=str(folder), threads=1)
    model.model.tokenizer.enable_truncation(embedder.model.max_input_tokens + 2)
    for text in TEXTS:
        (pooled,) = model.embed([text])
        np.testing.assert_allclose(embedder.embed_query(text), pooled, atol=1e-6)


def test_window_rows_follow_the_text_rows_and_do_not_change_them(embedder: LocalEmbedder) -> None:
    windows: list[list[Window]] = [
        [((0, 3), (4, 8)), ((9, 13),)], [], [((0, len(COMMAND)),)], [((0, 5),)], [], [], [], []
    ]  # fmt: skip
    rows, usage = embedder.embed_passages(TEXTS, windows)
    plain, _ = embedder.embed_passages(TEXTS)
    assert rows.shape == (len(TEXTS) + 4, embedder.model.dim)
    np.testing.assert_allclose(rows[: len(TEXTS)], plain, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert usage.tokens == sum(embedder.count_tokens(TEXTS))
    place = len(TEXTS)
    for text, spans in zip(TEXTS, windows, strict=True):
        alone, _ = embedder.embed_passages([text], [spans])
        np.testing.assert_allclose(alone[1:], rows[place : place + len(spans)], atol=1e-6)
        place += len(spans)


def test_a_window_vector_reflects_its_words_and_the_text_around_them(
    embedder: LocalEmbedder,
) -> None:
    cooking = "Knead the dough and let it rest for an hour."
    text = f"{cooking} {SENTENCE}"
    windows = [((0, len(cooking)),), ((len(cooking) + 1, len(text)),)]
    rows, _ = embedder.embed_passages([text, SENTENCE], [windows, [((0, len(SENTENCE)),)]])
    question = embedder.embed_query("How does a walking robot keep its balance?")
    assert rows[3] @ question > rows[0] @ question > rows[2] @ question
    assert rows[4] @ rows[1] > 0.97, "the window has all tokens except the special ones"
    assert rows[3] @ rows[1] < 0.999


def test_a_window_after_the_limit_or_without_tokens_gets_the_text_vector(
    embedder: LocalEmbedder,
) -> None:
    text = "\u200b " + "gear " * 400
    after_limit = ((len(text) - 9, len(text)),)
    rows, _ = embedder.embed_passages([text], [[((0, 1),), after_limit]])
    np.testing.assert_array_equal(rows[1:], rows[[0, 0]])


def test_a_window_contains_only_its_words_even_if_they_are_apart(embedder: LocalEmbedder) -> None:
    text = "Backlash unsettles any loop, and friction unsettles gears."
    spans = [(0, 8), (33, 41)]
    rows, _ = embedder.embed_passages([text], [[tuple(spans), (spans[0],), (spans[1],)]])
    assert [text[start:end] for start, end in spans] == ["Backlash", "friction"]
    _, both, one, other = rows
    assert both @ one > other @ one
    assert both @ other > one @ other
    assert both @ one < 0.99


def test_a_question_has_one_row_per_token_without_special_tokens(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed_question(COMMAND)
    assert vectors.tokens.shape == (embedder.count_tokens([COMMAND])[0], embedder.model.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors.tokens, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors.dense, embedder.embed_query(COMMAND))
    window, _ = embedder.embed_passages([COMMAND], [[((0, len(COMMAND)),)]])
    mean = vectors.tokens.mean(axis=0)
    np.testing.assert_allclose(window[1], mean / np.linalg.norm(mean), atol=1e-5)
    assert "".join(COMMAND[start:end] for start, end in vectors.spans) == COMMAND.replace(" ", "")


def test_a_question_without_tokens_has_its_whole_vector_as_only_row(
    embedder: LocalEmbedder,
) -> None:
    vectors = embedder.embed_question("\u200b")
    np.testing.assert_array_equal(vectors.tokens, vectors.dense[np.newaxis])
    assert vectors.spans == ()


def test_no_texts_give_no_rows(embedder: LocalEmbedder) -> None:
    rows, usage = embedder.embed_passages([])
    assert rows.shape == (0, embedder.model.dim)
    assert usage.requests == 0


def test_all_word_pieces_of_a_long_text_are_counted(embedder: LocalEmbedder) -> None:
    assert embedder.count_tokens(["", "robot", COMMAND, "gear " * 400]) == [0, 1, 9, 400]


def test_text_after_the_token_limit_is_ignored(embedder: LocalEmbedder) -> None:
    limit = embedder.model.max_input_tokens
    full = embedder.embed_query("gear " * limit)
    np.testing.assert_allclose(embedder.embed_query("gear " * (limit + 50)), full, atol=1e-6)
    assert np.abs(embedder.embed_query("gear " * (limit - 50)) - full).max() > 1e-3


def test_damaged_weights_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendored = local_embedder._model_dir()  # noqa: SLF001  # the folder is not a setting
    for file in vendored.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "textbook.onnx"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    monkeypatch.setattr(local_embedder, "_model_dir", lambda: tmp_path)
    local_embedder._load_model.cache_clear()  # noqa: SLF001  # other tests may have loaded it
    try:
        LocalEmbedder().load()
        with pytest.raises(EmbeddingError, match=r"textbook\.onnx is damaged"):
            LocalEmbedder().embed_query(QUESTION)
    finally:
        local_embedder._load_model.cache_clear()  # noqa: SLF001  # other tests need the real weights


def test_threads_can_use_the_model_for_the_first_time_together() -> None:
    script = (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from rag_pipeline.adapters.embedders.local import LocalEmbedder\n"
        "embedder = LocalEmbedder()\n"
        "print(len(list(Pool(8).map(embedder.embed_query, ['a'] * 8))))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "8\n", done.stderr
