"""Answers in the book's own sentences."""

from __future__ import annotations

import numpy as np
import pytest

from rag_pipeline.answering import passages
from rag_pipeline.answering.extractive import Quote, choose_quotes, format_quotes
from rag_pipeline.answering.models import Source
from rag_pipeline.answering.passages import Unit, find_blocks, split_units
from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingUsage
from rag_pipeline.retrieval.models import Citation
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING

CITATION = Citation("t", "s", "", "m", "c")


def number(*texts: str) -> list[Source]:
    return [Source(at, str(at), text, CITATION) for at, text in enumerate(texts, 1)]


def test_the_sentences_that_hold_the_question_are_quoted_with_their_source() -> None:
    found = choose_quotes("How fast does the gyroscope drift?", number(WALKING, SENSING))
    assert found[0].text.startswith("Its gyroscope drifts")
    assert {entry.source.number for entry in found} == {2}


def test_every_sentence_is_verbatim_and_in_the_order_of_its_source() -> None:
    sources = number(WALKING, SENSING, CODE)
    found = choose_quotes("gyroscope drifts, velocity of the mass, spin call", sources)
    places = [
        (entry.source.number, sources[entry.source.number - 1].text.index(entry.text))
        for entry in found
    ]
    assert places == sorted(places)
    assert len({number for number, _ in places}) > 1


def test_code_stays_whole() -> None:
    found = choose_quotes("Which rclpy call spins the walker node?", number(CODE))
    assert "```python\nnode = Node('walker')\nrclpy.spin(node)\n```" in [e.text for e in found]
    text = format_quotes(found)
    assert "```\n\n[1]" in text


FORMULA = "$$\n\\tau = F r\n$$"


@pytest.mark.parametrize(
    ("text", "units"),
    [
        pytest.param(
            "Intro sentence here.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd of it.",
            ["Intro sentence here.", "| a | b |\n|---|---|\n| 1 | 2 |", "End of it."],
            id="table",
        ),
        pytest.param(
            "Rates:\n\nSensor | Rate\n--- | ---\nIMU | 400\n\nEnd.",
            ["Rates:", "Sensor | Rate\n--- | ---\nIMU | 400", "End."],
            id="table_without_outer_pipes",
        ),
        pytest.param("End.\n\n~~~\ncode. More", ["End.", "~~~\ncode. More"], id="open_fence"),
        pytest.param("```\na. B\n```\nIt.", ["```\na. B\n```", "It."], id="fence"),
        pytest.param(
            "> ```\n> a. B\n> ```\nIt.", ["> ```\n> a. B\n> ```", "It."], id="quoted_fence"
        ),
        pytest.param(
            "```npm i``` installs. It ends.", ["```npm i``` installs.", "It ends."], id="long_ticks"
        ),
        pytest.param("Use `a. B[1]` here.", ["Use `a. B[1]` here."], id="code_span"),
        pytest.param(
            "So $a. B$ holds. It does.", ["So $a. B$ holds.", "It does."], id="formula_span"
        ),
        pytest.param("It costs $5. Or $6.", ["It costs $5.", "Or $6."], id="prices"),
        pytest.param(
            f"It is.\n\n{FORMULA}\n\nIt was.", ["It is.", FORMULA, "It was."], id="formula"
        ),
        pytest.param(
            f"A. Torque is\n\n{FORMULA}\n\nwith a force. It was.",
            [f"A. Torque is\n\n{FORMULA}\n\nwith a force.", "It was."],
            id="formula_in_sentence",
        ),
        pytest.param(
            f"It is $$a.\nB$$ there. Torque:\n{FORMULA}\n1. One",
            ["It is $$a.\nB$$ there.", f"Torque:\n{FORMULA}", "1. One"],
            id="formula_in_line",
        ),
        pytest.param(f"{FORMULA}\n\n{FORMULA}", [FORMULA, FORMULA], id="two_formulas"),
        pytest.param(
            "An open $$ ends.\n\nIt is $$.", ["An open $$ ends.", "It is $$."], id="open_formula"
        ),
        pytest.param(
            "```\n$$\n```\nIt. $$x$$", ["```\n$$\n```", "It.", "$$x$$"], id="formula_mark_in_code"
        ),
    ],
)
def test_a_unit_is_what_makes_sense_alone(text: str, units: list[str]) -> None:
    assert [text[unit.start : unit.end] for unit in split_units(text)] == units
    returned = text.replace("\n", "\r\n")
    assert [returned[unit.start : unit.end] for unit in split_units(returned)] == [
        unit.replace("\n", "\r\n") for unit in units
    ]


WRAPPED = "Shrinking the image to\n15 kB helps. It\nDoes."


@pytest.mark.parametrize(
    ("text", "units"),
    [
        pytest.param(WRAPPED, [WRAPPED[:35], "It\nDoes."], id="paragraph"),
        pytest.param(
            "- Set it to\n  $x$. Then\n  Stop.\n- Go.",
            ["- Set it to\n  $x$.", "Then\n  Stop.", "- Go."],
            id="list_item",
        ),
        pytest.param("> It is\n> ROS. No.", ["> It is\n> ROS.", "No."], id="quote"),
        pytest.param(
            "Time: 3 h  \nLevel: A\\\nB", ["Time: 3 h", "Level: A\\", "B"], id="hard_break"
        ),
        pytest.param("- One\n\n  Two\n- Three", ["- One", "Two", "- Three"], id="two_paragraphs"),
        pytest.param("It is\n\n## A\nB", ["It is", "## A", "B"], id="heading"),
    ],
)
def test_a_sentence_of_the_book_does_not_end_where_its_line_does(
    text: str, units: list[str]
) -> None:
    found = split_units(text, find_blocks(text))
    assert [text[unit.start : unit.end] for unit in found] == units


def test_each_line_of_a_selection_may_be_an_entry_of_its_own() -> None:
    selection = "Walk slowly\nStop at once"
    assert len(split_units(selection)) == 2


def test_no_text_outside_the_known_blocks_is_lost() -> None:
    text = f"It is.\n\n{FORMULA}\n\nIt was."
    formula = TextBlock(TextBlockKind.FORMULA, 8, 8 + len(FORMULA))
    units = [text[unit.start : unit.end] for unit in split_units(text, [formula])]
    assert units == ["It is.", FORMULA, "It was."]


def test_a_unit_knows_the_blocks_it_begins_and_ends_in() -> None:
    text = f"# A\n\n- One. Two.\n\n> Torque is\n>\n> {FORMULA}"
    text = text.replace("\n\\tau", "\n> \\tau").replace("\n$$", "\n> $$")
    kinds = [(unit.first.value, unit.last.value, unit.quoted) for unit in split_units(text)]
    assert kinds == [
        ("heading", "heading", False),
        ("list_item", "paragraph", False),
        ("paragraph", "paragraph", False),
        ("paragraph", "formula", True),
    ]


def test_the_blocks_of_a_source_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = tuple(find_blocks(CODE))
    monkeypatch.setattr(passages, "find_blocks", None)
    found = choose_quotes("spin call", [Source(1, "1", CODE, CITATION, blocks)])
    assert "```python" in format_quotes(found)


def show(*texts: str) -> str:
    """Quote each text as one unit of the same source number."""
    quotes = []
    for text in texts:
        units = split_units(text)
        whole = Unit(0, len(text), units[0].first, units[-1].last, units[0].quoted)
        quotes.append(Quote(number(text)[0], whole, frozenset()))
    return format_quotes(quotes)


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (("It is.", "It was."), "It is. [1] It was. [1]"),
        (("    ```sh\n      a\n    ```",), "```sh\n  a\n```\n\n[1]"),
        (("- ```sh\n    a\n  ```",), "```sh\n  a\n```\n\n[1]"),
        (("> ```sh\n>   a\n>\n> b\n> ```",), "```sh\n  a\n\nb\n```\n\n[1]"),
        (("It is.", "> Run\n> it."), "It is. [1] Run\nit. [1]"),
        (("It is.", f"Torque is\n\n{FORMULA}"), f"It is. [1] Torque is\n\n{FORMULA}\n\n[1]"),
        ((f"{FORMULA}\n\nwith x.", "It is."), f"{FORMULA}\n\nwith x. [1] It is. [1]"),
        ((FORMULA, "It is."), f"{FORMULA}\n\n[1]\n\nIt is. [1]"),
        (("- One", "- Two", "It is."), "- One [1]\n- Two [1]\n\nIt is. [1]"),
        (("It is.", "2. Two"), "It is. [1]\n\n2. Two [1]"),
        (("a | b\n--|--\n1 | 2",), "a | b\n--|--\n1 | 2\n\n[1]"),
    ],
)
def test_extracts_are_sound_markdown(texts: tuple[str, ...], shown: str) -> None:
    assert show(*texts) == shown


def test_repeats_are_left_out() -> None:
    found = choose_quotes("capture point velocity", number(WALKING, WALKING, WALKING))
    assert len({entry.text for entry in found}) == len(found)


def test_without_a_common_word_the_passage_opens_the_answer() -> None:
    found = choose_quotes("Explain this please", number(WALKING, SENSING))
    assert found[0].text == WALKING.split(". ")[0] + "."
    assert {entry.source.number for entry in found} == {1}


def test_the_opening_of_a_passage_says_nothing_twice() -> None:
    line = "A gear turns the wheel slowly."
    assert [e.text for e in choose_quotes("Explain this", number(f"{line}\n" * 6))] == [line]


def test_a_sentence_without_spaces_is_no_label() -> None:
    text = "步骤。机器人用两条腿走路并保持平衡。它每一步都会摔倒并接住自己。"
    quoted = [entry.text for entry in choose_quotes("Explain this", number(text))]
    assert quoted == ["机器人用两条腿走路并保持平衡。", "它每一步都会摔倒并接住自己。"]


def test_weights_decide_which_word_matters() -> None:
    question = "ankle velocity"
    heavy = choose_quotes(question, number(WALKING), weights={"ankl": 9.0, "veloc": 0.1})
    assert heavy[0].text.startswith("Ankle")
    light = choose_quotes(question, number(WALKING), weights={"ankl": 0.1, "veloc": 9.0})
    assert "velocity" in light[0].text


def test_tiny_or_no_sources_are_no_failure() -> None:
    assert choose_quotes("x", []) == ()
    assert choose_quotes("x", number("  ")) == ()
    assert [entry.text for entry in choose_quotes("x", number("ZMP"))] == ["ZMP"]
    assert format_quotes(()) == ""


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
    found = choose_quotes(question, number(WALKING), embedder=FirstLetterEmbedder())  # type: ignore[arg-type]  # lists for sequences
    assert found[0].text.startswith(("A walking", "Ankle"))


def test_list_entries_keep_their_lines() -> None:
    text = "- The robot walks on two legs.\n- The robot also walks uphill slowly."
    shown = format_quotes(choose_quotes("robot walks legs uphill", number(text)))
    assert shown == "- The robot walks on two legs. [1]\n- The robot also walks uphill slowly. [1]"


def test_both_halves_of_a_question_are_spoken_to() -> None:
    filler = "Nothing else of note stands in this one."
    sources = number(WALKING, filler, filler, filler, SENSING)
    found = choose_quotes("How does ankle torque relate to gyroscope drifts?", sources)
    assert {entry.source.number for entry in found} == {1, 5}
