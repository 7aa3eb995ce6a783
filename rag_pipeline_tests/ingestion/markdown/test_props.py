"""Tests of the texts that components show from their attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.ingestion.markdown.page import read_content
from rag_pipeline_tests.cases.case_files import CaseFile, chunk_case
from rag_pipeline_tests.growth import assert_linear

if TYPE_CHECKING:
    from collections.abc import Callable


def _read(source: str, rules: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the cleaned text of a page, and the components whose text cannot be read."""
    content = read_content(source, 0, {}, mdx=True, component_text=rules)
    text = "\n".join(block.text.strip() for block in content.blocks if block.text.strip())
    return text, tuple(content.scope.unread_tags)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('<Hint text="Wear gloves." />', "Wear gloves."),
        ('<Hint text={"Wear gloves."} />', "Wear gloves."),
        ("<Hint text={`Wear gloves.`} />", "Wear gloves."),
        ('<Hint text="Salt &amp; sand" />', "Salt & sand"),
        (r"<Hint text={'It\'s hot'} />", "It's hot"),
        ("<Hint text={<>Wear <b>two</b> gloves.</>} />", "Wear two gloves."),
        (
            '<Option name="speed" type="integer" defaultValue={12} description="In rpm." />',
            "name: speed, type: integer, defaultValue: 12\nIn rpm.",
        ),
        ('<Tile title="Motor" description="Six poles." href="/motor" />', "Motor\nSix poles."),
        ('<Steps items={["Lift", "Turn"]} />', "Lift\nTurn"),
        (
            "<Faq entries={[{question: 'Wet?', answer: 'Dry it.', icon: 'drop', href: '/a'}]} />",
            "Wet?\nDry it.",
        ),
        ('<Box header={<Tag label="New" />} className="x" style={{color: "red"}} />', "New"),
        ('<Alert type="danger" text="Hot." />', "Hot."),
        ('A <Badge text="beta" /> feature.', "A beta feature."),
        ("<Columns count={2}>\nSalt.\n</Columns>", "Salt."),
        ('<Columns count={-2.5} title="Salt">\nDry.\n</Columns>', "Salt\nDry."),
        ('<Since version="9" />', "version: 9"),
        ("<Since version={9} />", "version: 9"),
        ('<Since label="9" />', "9"),
        ("<Series points={[4, 5]} />", "4\n5"),
        ('<Dot color="#ff0000" label="Red" onClick={() => go("x")} />', "Red"),
        ('export const rows = ["One", "Two"];\n\n<Steps items={rows} />', "One\nTwo"),
        ('<input type="text" name="q" placeholder="x" />', ""),
        ('<Tabs defaultValue="a"><TabItem value="a" label="A">x</TabItem></Tabs>', "A x"),
    ],
)
def test_strings_of_components_are_text_unless_their_name_says_otherwise(
    source: str, shown: str
) -> None:
    assert _read(source) == (shown, ())


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ("", "kind: new\nBeta"),
        ("-Card.kind", "Beta"),
        ("-Card", ""),
        ("*.variant,-Card.kind", "variant: wide\nBeta"),
        ("-*.title,Card.title", "kind: new\nBeta"),
    ],
)
def test_a_setting_adds_exceptions_for_own_components(rules: str, shown: str) -> None:
    assert _read('<Card variant="wide" kind="new" title="Beta" itemId="x" />', rules)[0] == shown


def test_a_setting_shows_a_number_of_a_tag_around_other_content() -> None:
    step = "<Step number={2}>\nStir.\n</Step>"
    assert _read(step)[0] == "Stir."
    assert _read(step, "Step.number")[0] == "number: 2\nStir."


@pytest.mark.parametrize(
    ("source", "unread"),
    [
        ("<Chart data={rows} />", ("Chart",)),
        ("<Chart data={rows.map((row) => row.name)} title='Loads' />", ("Chart",)),
        ("<Chart {...options} />", ("Chart",)),
        ("<Legend />", ("Legend",)),
        ("<Legend>Text.</Legend>", ()),
        ("<Legend icon={pick()} onClick={() => 1}>Text.</Legend>", ()),
        ("<TOCInline toc={toc} />", ()),
        ("<Chart data={/* nothing */} label='A' />", ()),
    ],
)
def test_a_component_whose_text_cannot_be_read_is_reported(
    source: str, unread: tuple[str, ...]
) -> None:
    assert _read(source)[1] == unread


def test_what_cannot_be_read_does_not_hide_the_other_texts() -> None:
    assert _read("<Chart data={rows} title='Loads' />")[0] == "Loads"


def test_a_huge_attribute_is_left_out_and_reported() -> None:
    text, unread = _read(f'Before.\n\n<Data json="{"word " * 250_000}" title="Short" />\n\nAfter.')
    assert text == "Before.\nShort\nAfter."
    assert unread == ("Data",)


def test_deeply_nested_literals_are_read_without_recursion() -> None:
    depth = 50_000
    assert _read(f"<Tree items={{{'[' * depth}'leaf'{']' * depth}}} />") == ("leaf", ())
    jsx = "<b>{" * 500 + "'x'" + "}</b>" * 500
    assert _read(f"<Tree items={{{jsx}}} />\n\nAfter.")[0].endswith("After.")


@pytest.mark.parametrize(
    "make",
    [
        lambda count: "<Steps items={[" + "'a b', " * count + "]} />",
        lambda count: "<Box text={<>" + "<b>x</b> {'y'} " * count + "</>} />",
        lambda count: "<Box text={<>" + "<b>x " * count,
        lambda count: "<Tree items={" + "[{a: " * count,
        lambda count: '<Card title="a" ' * count,
    ],
)
def test_reading_attributes_takes_linear_time(make: Callable[[int], str]) -> None:
    # In smaller texts, all scans that find no end are within the limit of `Scanner`.
    assert_linear(lambda count: _read(make(count)), 2_000, least=2_000)


def test_the_texts_of_attributes_can_be_cut_into_chunks() -> None:
    entries = ", ".join(f"'Sentence number {n} is here.'" for n in range(300))
    source = f"## Steps\n\n<Steps items={{[{entries}]}} />\n"
    _, chunks = chunk_case(CaseFile("", "", {}, source, ""))
    assert len(chunks) > 1
    assert all(chunk.token_count <= 800 for chunk in chunks)
    assert "Sentence number 299 is here." in chunks[-1].text


def test_a_long_exported_literal_can_be_cut_into_chunks() -> None:
    entries = ", ".join(f"'Sentence number {n} is here.'" for n in range(300))
    source = f"export const steps = [{entries}];\n\n<Steps items={{steps}} />\n"
    _, chunks = chunk_case(CaseFile("", "", {}, source, ""))
    assert len(chunks) > 1
    assert all(chunk.token_count <= 800 for chunk in chunks)
    assert "Sentence number 299 is here." in chunks[-1].text
