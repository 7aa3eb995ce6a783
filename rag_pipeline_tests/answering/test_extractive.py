"""Answers in the book's own sentences."""

from __future__ import annotations

import numpy as np

from rag_pipeline.answering.extractive import extract_answer, format_extract
from rag_pipeline.answering.models import Source
from rag_pipeline.answering.passages import split_units
from rag_pipeline.core.models import EmbeddingModel, EmbeddingUsage
from rag_pipeline.retrieval.models import Citation
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING

CITATION = Citation("t", "s", "", "m", "c")


def number(*texts: str) -> list[Source]:
    return [Source(at, str(at), text, CITATION) for at, text in enumerate(texts, 1)]


def test_the_sentences_that_hold_the_question_are_quoted_with_their_source() -> None:
    found = extract_answer("How fast does the gyroscope drift?", number(WALKING, SENSING))
    assert found[0].text.startswith("Its gyroscope drifts")
    assert {entry.cited for entry in found} == {(2,)}


def test_every_sentence_is_verbatim_and_in_the_order_of_its_source() -> None:
    sources = number(WALKING, SENSING, CODE)
    found = extract_answer("gyroscope drifts, velocity of the mass, spin call", sources)
    places = [
        (entry.cited[0], sources[entry.cited[0] - 1].text.index(entry.text)) for entry in found
    ]
    assert places == sorted(places)
    assert len({number for number, _ in places}) > 1


def test_code_stays_whole() -> None:
    found = extract_answer("Which rclpy call spins the walker node?", number(CODE))
    assert "```python\nnode = Node('walker')\nrclpy.spin(node)\n```" in [e.text for e in found]
    text = format_extract(found)
    assert "```\n\n[1]" in text


def test_a_table_is_one_unit_and_an_open_fence_ends_with_the_text() -> None:
    text = "Intro sentence here.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd of it.\n\n~~~\ncode"
    assert [text[start:end] for start, end in split_units(text)] == [
        "Intro sentence here.",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "End of it.",
        "~~~\ncode",
    ]


def test_repeats_are_left_out() -> None:
    found = extract_answer("capture point velocity", number(WALKING, WALKING, WALKING))
    assert len({entry.text for entry in found}) == len(found)


def test_without_a_common_word_the_passage_opens_the_answer() -> None:
    found = extract_answer("Explain this please", number(WALKING, SENSING))
    assert found[0].text == WALKING.split(". ")[0] + "."
    assert {entry.cited for entry in found} == {(1,)}


def test_the_opening_of_a_passage_says_nothing_twice() -> None:
    line = "A gear turns the wheel slowly."
    assert [e.text for e in extract_answer("Explain this", number(f"{line}\n" * 6))] == [line]


def test_a_sentence_without_spaces_is_no_label() -> None:
    text = "步骤。机器人用两条腿走路并保持平衡。它每一步都会摔倒并接住自己。"
    quoted = [entry.text for entry in extract_answer("Explain this", number(text))]
    assert quoted == ["机器人用两条腿走路并保持平衡。", "它每一步都会摔倒并接住自己。"]


def test_weights_decide_which_word_matters() -> None:
    question = "ankle velocity"
    heavy = extract_answer(question, number(WALKING), weights={"ankl": 9.0, "veloc": 0.1})
    assert heavy[0].text.startswith("Ankle")
    light = extract_answer(question, number(WALKING), weights={"ankl": 0.1, "veloc": 9.0})
    assert "velocity" in light[0].text


def test_tiny_or_no_sources_are_no_failure() -> None:
    assert extract_answer("x", []) == ()
    assert extract_answer("x", number("  ")) == ()
    assert [entry.text for entry in extract_answer("x", number("ZMP"))] == ["ZMP"]
    assert format_extract(()) == ""


class FirstLetterEmbedder:
    """Puts texts of one first letter together."""

    model = EmbeddingModel("test", "letters", 26, 100)

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [1 for _ in texts]

    def embed_passages(self, texts: list[str]) -> tuple[np.ndarray, EmbeddingUsage]:
        return np.stack([self.embed_query(text) for text in texts]), EmbeddingUsage()

    def embed_query(self, text: str) -> np.ndarray:
        row = np.zeros(26, dtype=np.float32)
        row[ord(text[0].lower()) - 97] = 1
        return row


def test_an_embedder_finds_what_words_do_not() -> None:
    question = "Anything like this?"
    found = extract_answer(question, number(WALKING), embedder=FirstLetterEmbedder())  # type: ignore[arg-type]  # lists for sequences
    assert found[0].text.startswith(("A walking", "Ankle"))


def test_list_entries_keep_their_lines() -> None:
    text = "- The robot walks on two legs.\n- The robot also walks uphill slowly."
    shown = format_extract(extract_answer("robot walks legs uphill", number(text)))
    assert shown == "- The robot walks on two legs. [1]\n- The robot also walks uphill slowly. [1]"


def test_both_halves_of_a_question_are_spoken_to() -> None:
    filler = "Nothing else of note stands in this one."
    sources = number(WALKING, filler, filler, filler, SENSING)
    found = extract_answer("How does ankle torque relate to gyroscope drifts?", sources)
    assert {entry.cited for entry in found} == {(1,), (5,)}
