"""Terms of a glossary: found in any usual form of page, with the sections that define them."""

from __future__ import annotations

import json

import pytest

from rag_pipeline.evaluation.golden_set import (
    DEFINITIONS_PATH,
    QUESTIONS_PATH,
    load_golden_set,
)
from rag_pipeline.evaluation.suggestions import (
    find_definitions,
    is_glossary,
    list_definitions,
    name_variants,
)
from rag_pipeline_tests.evaluation.golden_pages import make_page, read_book

HEADINGS = """\
# Words

Some words.

## Dough

### Autolyse

Flour and water rest before salt is added. It helps.

### **Crumb**

The inside of a loaf.

### Empty

### Commented

<!-- nothing to see -->

## Tools

### `use_scale`

A flag of the scale.

## More

Read on.
"""
BOLD = """\
# Terms

Read this first.

**Autolyse**: Flour and water rest. It helps.

**Crumb** \u2013 The inside of a loaf.

Plain text.
"""
LIST = """\
# A to Z

## A

- **Autolyse** - Flour and water rest.
- `use_scale`: A flag of the scale.

## C

* __Crumb__
  is the inside of a loaf.
"""
TABLE = """\
# Vocabulary

| Term | Meaning | Since |
|---|---|---|
| **Autolyse** | Flour and water rest. |
| Crumb | The inside of a loaf. | |
| Empty | |
"""


@pytest.mark.parametrize(
    ("source", "terms"),
    [
        pytest.param(
            HEADINGS,
            {
                "Autolyse": "Flour and water rest before salt is added.",
                "Crumb": "The inside of a loaf.",
                "use_scale": "A flag of the scale.",
            },
            id="headings",
        ),
        pytest.param(
            BOLD,
            {"Autolyse": "Flour and water rest.", "Crumb": "The inside of a loaf."},
            id="bold paragraphs",
        ),
        pytest.param(
            LIST,
            {
                "Autolyse": "Flour and water rest.",
                "use_scale": "A flag of the scale.",
                "Crumb": "is the inside of a loaf.",
            },
            id="list",
        ),
        pytest.param(
            TABLE,
            {"Autolyse": "Flour and water rest.", "Crumb": "The inside of a loaf."},
            id="table",
        ),
        pytest.param("# Glossary\n\nNothing yet.\n", {}, id="no terms"),
        pytest.param("# Glossary\n", {}, id="empty"),
    ],
)
def test_terms_are_found_in_each_form_of_glossary(source: str, terms: dict[str, str]) -> None:
    found = find_definitions([make_page("more/glossary.md", source)])
    assert {one.term: " ".join(one.definition.split()) for one in found} == terms


@pytest.mark.parametrize(
    ("path", "title", "expected"),
    [
        ("glossary.md", "Words", True),
        ("09-glossary.mdx", "Words", True),
        ("words.md", "The Glossary", True),
        ("glossaire.md", "Mots", True),
        ("woerter.md", "Glossar", True),
        ("words.md", "Words", False),
        ("gloss-paint.md", "Paint", False),
    ],
)
def test_a_glossary_is_known_by_its_name(path: str, title: str, *, expected: bool) -> None:
    page = make_page(path, f"---\ntitle: {title}\n---\n\nText.\n")
    assert is_glossary(page) is expected


@pytest.mark.parametrize(
    ("term", "variants"),
    [
        ("ZMP", ("ZMP",)),
        (
            "Intersection over union (IoU)",
            ("Intersection over union (IoU)", "Intersection over union", "IoU"),
        ),
        ("(IoU)", ("(IoU)",)),
    ],
)
def test_parentheses_give_two_more_names(term: str, variants: tuple[str, ...]) -> None:
    assert name_variants(term) == variants


@pytest.mark.parametrize(
    ("path", "source", "heading"),
    [
        pytest.param("a.md", "# Bread\n\n## The crumbs\n\nText.\n", "The crumbs", id="heading"),
        pytest.param("a.md", "---\ntitle: Crumb\n---\n\nText.\n", "Crumb", id="title"),
        pytest.param("a.md", "# Bread\n\n## Inside\n\nA crumb is the inside.\n", "Inside", id="is"),
        pytest.param(
            "a.md",
            "# Bread\n\n## Inside\n\nCut it. The **crumb** (white) means the inside.\n",
            "Inside",
            id="second sentence",
        ),
        pytest.param("a.md", "# Bread\n\n- *Crumbs* are the inside.\n", "Bread", id="list item"),
        pytest.param("a.md", "# Bread\n\n## Inside\n\nA crumb is soft.\n", None, id="property"),
        pytest.param("a.md", "# Bread\n\nA breadcrumb is a link.\n", None, id="other word"),
        pytest.param("a.md", "# Bread\n\n```\ncrumb is a loaf\n```\n", None, id="code"),
        pytest.param("quizzes/quiz.md", "# Quiz\n\nA crumb is a what?\n", None, id="quiz"),
        pytest.param("a.md", "# Bread\n\n## Crumb and crust\n\nText.\n", None, id="two terms"),
    ],
)
def test_a_section_defines_a_term_by_its_heading_or_a_sentence(
    path: str, source: str, heading: str | None
) -> None:
    glossary = make_page(
        "glossary.md", "# Glossary\n\n## Crumb\n\nThe inside.\n\n## Rye\n\nA grain.\n"
    )
    crumb, rye = find_definitions([glossary, make_page(path, source)])
    own, *others = [(place.doc_path, place.section_heading) for place in crumb.places]
    assert own == ("glossary.md", "Crumb")
    assert others == ([(path, heading)] if heading else [])
    assert len(rye.places) == 1


def test_an_entry_without_a_heading_is_known_by_its_text_only() -> None:
    (autolyse, _) = find_definitions([make_page("glossary.md", TABLE)])
    assert autolyse.places == ()


def test_a_book_without_a_glossary_has_no_terms() -> None:
    assert find_definitions([make_page("a.md", HEADINGS)]) == ()


def test_a_term_that_occurs_twice_is_listed_once() -> None:
    pages = [make_page(path, TABLE) for path in ("glossary.md", "b/glossary.md")]
    assert [one.term for one in find_definitions(pages)] == ["Autolyse", "Crumb"]


@pytest.mark.slow
def test_the_file_lists_the_terms_of_the_textbook() -> None:
    """`rag-pipeline golden-definitions --docs-dir website/docs` writes the same list."""
    found = find_definitions(list(read_book().values()))
    assert json.loads(DEFINITIONS_PATH.read_bytes()) == list_definitions(found)
    golden = load_golden_set(QUESTIONS_PATH, definitions_path=DEFINITIONS_PATH)
    assert golden.definitions == found
    assert len(found) >= 70
