"""Tests of lists of pages: `<DocCardList />` and generated indexes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.core.sources import Source
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from pathlib import Path

_LIST = "import DocCardList from '@theme/DocCardList';\n\n<DocCardList />\n"


def _write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md").replace("_json", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _category(**fields: object) -> str:
    return json.dumps({"label": "Wheels and axles", **fields})


def _read(docs: Path, *sources: Source) -> dict[str, tuple[str, str, str]]:
    """Return title, address and text of each document of a docs folder, or of sources."""
    found = {}
    for doc in discover_docs(docs, sources=sources).docs:
        parsed = parse_doc(doc, SiteSettings())
        text = "\n".join(chunk.text for chunk in chunk_doc(parsed, ChunkLimits()))
        found[str(doc.doc_id)] = (parsed.document.title, parsed.document.url, text)
    return found


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    _write(
        folder,
        parts__index_md=f"---\ntitle: Parts\n---\n{_LIST}",
        parts__rim_md="---\ntitle: Rim\nsidebar_position: 2\n---\nThe rim holds the tyre.\n",
        parts__hub_md="---\nsidebar_position: 1\ndescription: Turns.\n---\n# Hub\n\nText.\n",
        parts__hidden_md="---\ntitle: Secret\nunlisted: true\n---\nHidden.\n",
        parts__spokes__index_md="---\ntitle: Spokes\ndescription: Of steel.\n---\nText.\n",
    )
    return folder


def test_a_list_of_cards_is_text_in_the_order_of_the_sidebar(docs: Path) -> None:
    assert _read(docs)["parts/index.md"][2].split("\n") == [
        "- **Hub**: Turns.",
        "- **Rim**: The rim holds the tyre.",
        "- **Spokes**: Of steel.",
    ]


def test_a_page_with_cards_changes_with_its_cards(docs: Path) -> None:
    def hash_index() -> str:
        return next(
            doc.sha256 for doc in discover_docs(docs).docs if doc.doc_id == "parts/index.md"
        )

    before = hash_index()
    (docs / "parts" / "rim.md").write_text("---\ntitle: Rim\n---\nOther words.\n")
    assert hash_index() != before


def test_a_generated_index_is_a_page_with_its_children(docs: Path) -> None:
    link = {"type": "generated-index", "title": "All wheels", "description": "What turns."}
    (docs / "parts" / "_category_.json").write_text(_category(link=link))
    title, url, text = _read(docs)["parts/_category_.json"]
    assert (title, url) == ("All wheels", "/docs/category/wheels-and-axles")
    assert text.split("\n")[0] == "What turns."
    assert "- **Hub**: Turns." in text
    assert "- **Parts**" in text  # the index of the folder is a page like the others here


def test_a_page_that_begins_with_a_heading_has_it_as_description(docs: Path) -> None:
    _write(docs, parts__axle_md="---\ntitle: Axle\n---\n# Axle\n\n## Sizes {#s}\n\nText.\n")
    assert "- **Axle**: Sizes" in _read(docs)["parts/index.md"][2].split("\n")


EXCERPTS = {
    "code": "```js\nrun();\n```\n\nFirst words.\n",
    "import of several lines": "import {\n  a,\n} from 'a';\n\nFirst words.\n",
    "title with a line below": "Axle\n====\n\nFirst words.\n",
    "admonition and a tag": ":::note\n\n<b>First</b> words.\n\n:::\n",
    "quote": "# Axle\n\n> First words.\n",
}


@pytest.mark.parametrize("body", EXCERPTS.values(), ids=EXCERPTS)
def test_the_description_of_a_page_is_its_first_line_of_text(docs: Path, body: str) -> None:
    _write(docs, parts__axle_md=f"---\ntitle: Axle\n---\n{body}")
    assert "- **Axle**: First words." in _read(docs)["parts/index.md"][2].split("\n")


def test_cards_are_ordered_by_the_numbers_of_their_names(docs: Path) -> None:
    for name in ("10-nut", "9-bolt"):
        _write(docs, **{f"parts__{name}_md": "Text.\n"})
    _write(docs, **{"parts__1-axle__deep__steel_md": "Text.\n", "parts__1-axle__oil_md": "Text.\n"})
    lines = _read(docs)["parts/index.md"][2].split("\n")
    names = ["axle", "Hub", "Rim", "bolt", "nut", "Spokes"]
    assert [line.split("**")[1] for line in lines] == names
    assert lines[0] == "- **axle**"


def test_the_card_of_a_folder_shows_only_the_description_of_the_category(docs: Path) -> None:
    category = docs / "parts" / "spokes" / "_category_.json"
    category.write_text(_category(link={"type": "generated-index"}))
    assert _read(docs)["parts/index.md"][2].endswith("- **Wheels and axles**")
    category.unlink()
    _write(docs, parts__spokes__steel_md="Text.\n")
    assert _read(docs)["parts/index.md"][2].endswith("- **Spokes**")
    link = {"type": "generated-index", "description": "On its own page."}
    category.write_text(_category(link=link, description="Thin."))
    assert _read(docs)["parts/index.md"][2].endswith("- **Wheels and axles**: Thin.")


def test_an_empty_description_is_no_description(docs: Path) -> None:
    _write(docs, parts__axle_md="---\ntitle: Axle\ndescription: ''\n---\nFirst words.\n")
    assert "- **Axle**" in _read(docs)["parts/index.md"][2].split("\n")


_MESSAGES = {
    "version.label": {"message": "Suivante"},
    "sidebar.first.category.Wheels and axles": {"message": "Roues"},
    "sidebar.first.category.Wheels and axles.link.generated-index.description": {
        "message": "Ce qui tourne."
    },
    "sidebar.first.category.thin": {"message": "Rayons"},
    "sidebar.first.link.Shop": {"message": "Magasin"},
}


def _translate(docs: Path, *, messages: str) -> Source:
    """Write translations of two pages of a site, and return the source of the translated pages."""
    config = docs.parent / "docusaurus.config.js"
    config.write_text(config.read_text() if config.exists() else "export default {};")
    folder = docs.parent / "i18n" / "fr" / "docusaurus-plugin-content-docs" / "current"
    _write(
        folder,
        parts__rim_md="---\ntitle: Jante\nsidebar_position: 2\n---\nElle tient le pneu.\n",
        parts__index_md=f"---\ntitle: Composants\n---\n{_LIST}",
    )
    (folder / "parts" / "_category_.json").write_text(_category(label="Not read"))
    (folder.parent / "current.json").write_text(messages)
    return Source(
        name="docs",
        folder=folder,
        prefix="fr/",
        fallback=docs,
        route_base_path="docs",
        base_url="fr/",
        locale="fr",
    )


def test_a_translated_index_is_in_the_language_of_its_page(docs: Path) -> None:
    link = {"type": "generated-index", "description": "What turns."}
    (docs / "parts" / "_category_.json").write_text(_category(link=link))
    content = _category(label="Spokes", key="thin")
    (docs / "parts" / "spokes" / "_category_.json").write_text(content)
    source = _translate(docs, messages=json.dumps(_MESSAGES))
    found = _read(docs, source)
    title, url, text = found["fr/parts/_category_.json"]
    assert (title, url) == ("Roues", "/fr/docs/category/wheels-and-axles")
    assert text.split("\n") == [
        "Ce qui tourne.",
        "",
        "- **Hub**: Turns.",
        "- **Jante**: Elle tient le pneu.",
        "- **Composants**",
        "- **Rayons**: Of steel.",
    ]
    assert found["fr/parts/index.md"][2].split("\n")[:2] == text.split("\n")[2:4]


@pytest.mark.parametrize("messages", ["[1", "[]", '{"sidebar.a.category.b": "c"}'])
def test_translations_that_cannot_be_read_leave_the_labels(docs: Path, messages: str) -> None:
    (docs / "parts" / "_category_.json").write_text(_category(link={"type": "generated-index"}))
    source = _translate(docs, messages=messages)
    assert _read(docs, source)["fr/parts/_category_.json"][0] == "Wheels and axles"


def test_indexes_with_the_same_label_have_addresses_in_the_order_of_the_sidebar(docs: Path) -> None:
    for name, position in (("a", 3), ("b", 1), ("b/c", 1), ("empty", 2)):
        folder = docs / name
        folder.mkdir(parents=True)
        fields = {"position": position, "link": {"type": "generated-index"}}
        (folder / "_category_.json").write_text(_category(**fields))
        if name != "empty":
            _write(folder, page_md="Text.\n")
    (docs / "b" / "loop").symlink_to(docs)
    found = {place: url for place, (_, url, _) in _read(docs).items() if "category" in url}
    assert found == {
        "b/_category_.json": "/docs/category/wheels-and-axles",
        "b/c/_category_.json": "/docs/category/wheels-and-axles-1",
        "a/_category_.json": "/docs/category/wheels-and-axles-2",
    }


def test_links_that_lead_back_over_another_folder_are_not_followed(docs: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        _write(docs / name, page_md="Text.\n")
        for number in range(3):  # without a stop, each level has three times the folders
            (docs / name / f"to-{other}-{number}").symlink_to(docs / other)
    assert _read(docs)["a/page.md"]


def test_a_position_may_be_larger_than_any_float(docs: Path) -> None:
    category = _category(position=10**400, link={"type": "generated-index"})
    (docs / "parts" / "_category_.json").write_text(category)
    assert _read(docs)["parts/_category_.json"][0] == "Wheels and axles"


def test_an_index_without_a_label_has_the_name_of_its_folder(docs: Path) -> None:
    _write(docs, **{"01-tools__page_md": "Text.\n"})
    (docs / "01-tools" / "_category_.json").write_text('{"link": {"type": "generated-index"}}')
    assert _read(docs)["01-tools/_category_.json"][:2] == ("tools", "/docs/category/tools")


def test_a_generated_index_may_have_its_own_slug(docs: Path) -> None:
    link = {"type": "generated-index", "slug": "/wheels"}
    (docs / "parts" / "_category_.json").write_text(_category(link=link))
    assert _read(docs)["parts/_category_.json"][:2] == ("Wheels and axles", "/docs/wheels")


@pytest.mark.parametrize(
    "content", [_category(), _category(link={"type": "doc", "id": "x"}), "[1", "null", "a: b: c"]
)
def test_other_categories_are_no_pages(docs: Path, content: str) -> None:
    (docs / "parts" / "_category_.json").write_text(content)
    assert "parts/_category_.json" not in _read(docs)


_CONFIG = "export default {presets: [['classic', {docs: {sidebarPath: './sidebars.js'}}]]};"
_PET = """
const pets = [
  'rim',
  {type: 'doc', id: 'parts/hub', label: 'The hub'},
  {type: 'link', label: 'Shop', href: 'https://x.org', description: 'Buy.'},
  {type: 'html', value: '<hr>'},
  {type: 'category', label: 'Spokes', description: 'Thin.', items: ['parts/spokes/index']},
];
module.exports = pets;
"""
_SIDEBARS = """
import pets from './pets';
export default {
  first: ['intro', {'Short form': ['parts/tyre']}],
  second: [{type: 'category', label: 'All', link: {type: 'doc', id: 'parts/index'}, items: pets}],
};
"""


@pytest.fixture
def site(docs: Path) -> Path:
    """Return the folder of a site with a declared sidebar, which orders the pages otherwise."""
    folder = docs.parent
    _write(docs, rim_md="---\ntitle: Rim\nsidebar_label: Short rim\n---\nOutside.\n")
    _write(docs, **{"parts__01-tyre_md": f"---\ntitle: Tyre\n---\nText.\n\n{_LIST}"})
    _write(docs, intro_md="Text.\n")
    (folder / "docusaurus.config.js").write_text(_CONFIG)
    (folder / "pets.js").write_text(_PET)
    (folder / "sidebars.js").write_text(_SIDEBARS)
    return docs


def _notes(docs: Path, doc_id: str) -> tuple[str, ...]:
    (doc,) = (doc for doc in discover_docs(docs).docs if doc.doc_id == doc_id)
    return parse_doc(doc, SiteSettings()).notes.components


def test_a_list_of_cards_follows_the_sidebar_of_the_site(site: Path) -> None:
    assert _read(site)["parts/index.md"][2].split("\n") == [
        "- **Short rim**: Outside.",
        "- **The hub**: Turns.",
        "- **Shop**: Buy.",
        "- **Spokes**: Thin.",
    ]
    assert _notes(site, "parts/index.md") == ()


def test_a_page_without_children_lists_the_items_beside_it(site: Path) -> None:
    assert "- **Tyre**: Text." in _read(site)["parts/01-tyre.md"][2]


def test_a_list_changes_with_a_file_that_the_sidebar_imports(site: Path) -> None:
    assert "The hub" in _read(site)["parts/index.md"][2]
    (site.parent / "pets.js").write_text("module.exports = ['parts/spokes/index', 'parts/hub'];")
    assert _read(site)["parts/index.md"][2] == "- **Spokes**: Of steel.\n- **Hub**: Turns."


def test_the_items_of_a_sidebar_are_found_by_their_ids(site: Path) -> None:
    _write(site, **{"02-more__3-axle_md": "---\ntitle: Axle\n---\nLong.\n"})
    _write(site, parts__other_md="---\nid: special\ntitle: Special\n---\nOwn id.\n")
    ids = ["more/axle", "parts/special", "parts/hidden", "parts/other", "no/page", "../x"]
    (site.parent / "pets.js").write_text(f"module.exports = {json.dumps(ids)};")
    lines = _read(site)["parts/index.md"][2].split("\n")
    assert lines == ["- **Axle**: Long.", "- **Special**: Own id."]


@pytest.mark.parametrize("position", ["[", "first"])
def test_a_page_that_is_not_valid_has_no_card(docs: Path, position: str) -> None:
    _write(docs, parts__bad_md=f"---\ntitle: Bad\nsidebar_position: {position}\n---\nText.\n")
    (doc,) = (doc for doc in discover_docs(docs).docs if doc.doc_id == "parts/index.md")
    parsed = parse_doc(doc, SiteSettings())
    assert "Hub" in parsed.source
    assert "Bad" not in parsed.source


def test_a_part_of_a_folder_that_is_missing_has_no_cards(site: Path) -> None:
    (site.parent / "pets.js").write_text(
        "module.exports = ['rim', {type: 'autogenerated', dirName: 'gone'}];"
    )
    assert _read(site)["parts/index.md"][2] == "- **Short rim**: Outside."


def test_an_autogenerated_part_lists_its_folder(site: Path) -> None:
    (site.parent / "pets.js").write_text(
        "module.exports = ['rim', {type: 'autogenerated', dirName: 'parts/spokes'}];"
    )
    _write(site, parts__spokes__nipple_md="---\ntitle: Nipple\n---\nSmall.\n")
    lines = _read(site)["parts/index.md"][2].split("\n")
    assert lines == ["- **Short rim**: Outside.", "- **Spokes**: Of steel.", "- **Nipple**: Small."]


CODE = {
    "items": "module.exports = ['parts/hub', ask()];",
    "all items": "module.exports = ask();",
    "label": "module.exports = ['rim', {type: 'category', label: ask(), items: ['parts/hub']}];",
}


@pytest.mark.parametrize("source", CODE.values(), ids=CODE)
def test_a_sidebar_that_only_code_can_tell_is_reported(site: Path, source: str) -> None:
    (site.parent / "pets.js").write_text(source)
    assert _notes(site, "parts/index.md") == ("DocCardList",)


def test_the_folder_is_listed_if_the_whole_sidebar_is_code(site: Path) -> None:
    (site.parent / "sidebars.js").write_text("module.exports = ask();")
    assert "- **Hub**: Turns." in _read(site)["parts/index.md"][2]
    assert _notes(site, "parts/index.md") == ("DocCardList",)


@pytest.mark.parametrize(
    "sidebars", ["module.exports = {all: [{type: 'autogenerated', dirName: '.'}]};", None]
)
def test_a_sidebar_of_the_folders_lists_the_folder(site: Path, sidebars: str | None) -> None:
    if sidebars is None:
        (site.parent / "docusaurus.config.js").write_text("export default {presets: ['classic']};")
    else:
        (site.parent / "sidebars.js").write_text(sidebars)
    text = _read(site)["parts/index.md"][2]
    assert text.startswith("- **Tyre**: Text.\n- **Hub**: Turns.")  # the number of 01-tyre is 1
    assert _notes(site, "parts/index.md") == ()


def test_a_sidebar_that_is_nested_too_deeply_is_reported(site: Path) -> None:
    nested = '{"a": [' * 400 + '"rim"' + "]}" * 400
    (site.parent / "sidebars.json").write_text(nested)
    config = _CONFIG.replace("sidebars.js'", "sidebars.json'")
    (site.parent / "docusaurus.config.js").write_text(config)
    assert _notes(site, "parts/index.md") == ("DocCardList",)


def test_a_sidebar_outside_the_repository_is_not_read(site: Path) -> None:
    (site.parent / ".git").mkdir()
    (site.parent.parent / "sidebars.js").write_text("module.exports = {all: ['parts/index']};")
    config = _CONFIG.replace("./sidebars.js", "../sidebars.js")
    (site.parent / "docusaurus.config.js").write_text(config)
    assert "- **Hub**: Turns." in _read(site)["parts/index.md"][2]


def test_a_list_may_state_its_own_items(site: Path) -> None:
    items = "{[{type: 'link', href: '/x', label: 'Shop', description: 'Buy a rim.'}]}"
    _write(site, own_md=f"<DocCardList items={items} />\n")
    assert "Shop" in _read(site)["own.md"][2]
    assert "Buy a rim." in _read(site)["own.md"][2]
    _write(site, own_md="<DocCardList items={useDocsSidebar().items} />\n")
    assert _notes(site, "own.md") == ("DocCardList",)
    category = "<DocCardList items={useCurrentSidebarCategory().items} />\n"
    _write(site, parts__index_md=category)
    assert "- **Shop**: Buy." in _read(site)["parts/index.md"][2]


def test_a_version_has_a_sidebar_of_its_own(site: Path) -> None:
    old = site.parent / "versioned_docs" / "version-1.0"
    _write(old, parts__index_md=_LIST, parts__hub_md="Old text.\n")
    _write(
        site.parent,
        **{
            "versioned_sidebars__version-1.0-sidebars_json": json.dumps(
                {
                    "old": {
                        "Parts": ["parts/index", {"type": "ref", "id": "parts/hub", "label": "Old"}]
                    }
                }
            )
        },
    )
    assert _read(old)["parts/index.md"][2].split("\n")[1] == "- **Old**: Old text."


INDEX = """
module.exports = {all: [
  {type: 'category', label: 'Wheels & axles', items: ['parts/hub'],
   link: {type: 'generated-index'}},
  {type: 'category', label: 'Wheels & axles', items: [ITEM, 'parts/hub'],
   link: {type: 'generated-index', title: 'More', description: 'What turns.'}},
  {type: 'category', label: 'Own', items: ['rim'], link: {type: 'generated-index', slug: '/own/x'}},
  {type: 'category', label: 'Empty', items: [], link: {type: 'generated-index'}},
]};
"""


def test_a_generated_index_of_the_sidebar_is_a_page(site: Path) -> None:
    (site.parent / "sidebars.js").write_text(INDEX.replace("ITEM", "'rim'"))
    found = {url: (place, title, text) for place, (title, url, text) in _read(site).items()}
    assert found["/docs/category/wheels--axles"] == (
        "parts/_category_.category-wheels--axles.md",
        "Wheels & axles",
        "- **Hub**: Turns.",
    )
    assert found["/docs/category/wheels--axles-1"][1:] == (
        "More",
        "What turns.\n\n- **Short rim**: Outside.\n- **Hub**: Turns.",
    )
    assert found["/docs/own/x"][:2] == ("_category_.own-x.md", "Own")
    assert len([url for url in found if "empty" in url]) == 0


def test_a_category_that_no_sidebar_generates_is_no_page(site: Path) -> None:
    link = {"type": "generated-index"}
    (site / "parts" / "_category_.json").write_text(_category(link=link))
    assert "parts/_category_.json" not in _read(site)
    (site.parent / "sidebars.js").write_text(
        "module.exports = {all: [{type: 'autogenerated', dirName: 'parts'}]};"
    )
    (site / "parts" / "spokes" / "_category_.json").write_text(_category(link=link))
    assert "parts/_category_.json" not in _read(site)  # its folder is the sidebar itself
    assert "parts/spokes/_category_.json" in _read(site)


def test_a_declared_index_is_translated_too(site: Path) -> None:
    shop = "{type: 'link', label: 'Shop', href: 'https://x.org'}"
    sidebars = INDEX.replace("ITEM", shop).replace("'Wheels & axles'", "'Wheels and axles'")
    (site.parent / "sidebars.js").write_text(sidebars)
    found = _read(site, _translate(site, messages=json.dumps(_MESSAGES)))
    first = found["fr/parts/_category_.category-wheels-and-axles.md"]
    assert first[:2] == ("Roues", "/fr/docs/category/wheels-and-axles")
    second = found["fr/parts/_category_.category-wheels-and-axles-1.md"]
    assert second[0] == "More"
    assert second[2] == "Ce qui tourne.\n\n- **Magasin**\n- **Hub**: Turns."


def test_a_generated_index_with_items_of_code_is_reported(site: Path) -> None:
    (site.parent / "sidebars.js").write_text(INDEX.replace("ITEM", "ask()"))
    assert _notes(site, "parts/_category_.category-wheels--axles-1.md") == ("DocCardList",)
    assert _notes(site, "parts/_category_.category-wheels--axles.md") == ()


def test_a_list_without_pages_is_reported(tmp_path: Path) -> None:
    _write(tmp_path / "docs", alone__index_md=f"Text.\n\n{_LIST}")
    (doc,) = discover_docs(tmp_path / "docs").docs
    assert parse_doc(doc, SiteSettings()).notes.components == ("DocCardList",)


def test_a_card_that_names_the_list_does_not_show_it_again(docs: Path) -> None:
    (docs / "parts" / "hub.md").write_text(
        "---\nsidebar_position: 1\ndescription: With <DocCardList />.\n---\n# Hub\n\nText.\n"
    )
    assert _read(docs)["parts/index.md"][2].split("\n")[1] == "- **Rim**: The rim holds the tyre."
    assert len(_read(docs)["parts/index.md"][2].split("\n")) == 3


def test_a_generated_index_shows_each_card_once(docs: Path) -> None:
    (docs / "parts" / "hub.md").write_text("---\ndescription: With <DocCardList />.\n---\n# Hub\n")
    (docs / "parts" / "_category_.json").write_text(_category(link={"type": "generated-index"}))
    assert _read(docs)["parts/_category_.json"][2].count("The rim holds the tyre.") == 1
