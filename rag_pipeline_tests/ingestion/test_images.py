"""Tests of the images of a page: their addresses, texts and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.splicing import read_imports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import Chunk, Figure, ParsedDoc

_IMAGES = (
    "docs/arm/img/near.png",
    "docs/arm/with space.png",
    "static/img/shop.png",
    "static/x.svg",
)


def _read(root: Path, body: str, **files: str) -> tuple[ParsedDoc, Sequence[Chunk]]:
    """Parse and cut a page in a site with four images."""
    page = "---\ntitle: Arm\n---\n\n" + body
    texts = {"docs/arm/a.mdx": page, "docusaurus.config.js": "", **files}
    for name, text in {**dict.fromkeys(_IMAGES, "image"), **texts}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    path = root / "docs/arm/a.mdx"
    doc = DiscoveredDoc(parse_doc_id("arm/a.mdx"), path, "", 0, 0)
    imported = read_imports(doc.doc_id, path, path.read_bytes())
    site = SiteSettings(base_url="https://arm.example/book/")
    parsed = parse_doc(doc, site, path.read_bytes(), imported)
    return parsed, chunk_doc(parsed, ChunkLimits())


def _figures(root: Path, body: str) -> list[Figure]:
    parsed, chunks = _read(root, body)
    assert parsed.notes.warnings == ()
    return [figure for chunk in chunks for figure in chunk.figures]


@pytest.mark.parametrize(
    ("written", "address", "text", "caption"),
    [
        ("![The joint](./img/near.png)", "@site/docs/arm/img/near.png", "The joint", ""),
        ('![J](img/near.png "Figure 1")', "@site/docs/arm/img/near.png", "J", "Figure 1"),
        ("![J](<./with space.png>)", "@site/docs/arm/with space.png", "J", ""),
        ("![J](./with%20space.png)", "@site/docs/arm/with space.png", "J", ""),
        ("![J][ref]\n\n[ref]: /img/shop.png", "https://arm.example/book/img/shop.png", "J", ""),
        ("![J](/img/shop.png#dark)", "https://arm.example/book/img/shop.png", "J", ""),
        ("![J](@site/static/x.svg)", "https://arm.example/book/x.svg", "J", ""),
        ("![J](pathname:///y.png)", "https://arm.example/y.png", "J", ""),
        ("![J](https://other.example/z.png)", "https://other.example/z.png", "J", ""),
        (
            '<img src="/book/img/shop.png" alt="A &amp; B" />',
            "https://arm.example/book/img/shop.png",
            "A & B",
            "",
        ),
        (
            "<img src={require('./img/near.png').default} alt={'J'} />",
            "@site/docs/arm/img/near.png",
            "J",
            "",
        ),
        (
            "<img\n  alt=\"J\"\n  src={useBaseUrl('/img/shop.png')}\n/>",
            "https://arm.example/book/img/shop.png",
            "J",
            "",
        ),
        (
            '<Figure src="/img/shop.png" alt="J" caption="The shop" />',
            "https://arm.example/book/img/shop.png",
            "J",
            "The shop",
        ),
        (
            '<Screenshot src="img/shop.png" alt="J" />',
            "https://arm.example/book/img/shop.png",
            "J",
            "",
        ),
        (
            "import near from './img/near.png';\n\n<Zoom img={near} alt=\"J\" />",
            "@site/docs/arm/img/near.png",
            "J",
            "",
        ),
        (
            "import Near from '@site/static/x.svg';\n\n<Near title=\"Plan\" />",
            "https://arm.example/book/x.svg",
            "",
            "Plan",
        ),
        (
            "<ThemedImage sources={{light: '/img/shop.png', dark: '/x.svg'}} alt=\"J\" />",
            "https://arm.example/book/img/shop.png",
            "J",
            "",
        ),
        (
            '<figure>\n<img src="/x.svg" />\n<figcaption>The <b>plan</b></figcaption>\n</figure>',
            "https://arm.example/book/x.svg",
            "",
            "The plan",
        ),
    ],
)
def test_an_image_has_its_address_text_and_caption(
    tmp_path: Path, written: str, address: str, text: str, caption: str
) -> None:
    (figure,) = _figures(tmp_path, f"Before.\n\n{written}\n\nAfter.\n")
    assert (figure.address, figure.text, figure.caption) == (address, text, caption)
    assert figure.kind == "image"


@pytest.mark.parametrize(
    "written",
    [
        "`![a](./b.png)`",
        "```md\n![a](./b.png)\n```",
        "[a](/img/shop.png)",
        '<a href="/img/shop.png">shop</a>',
        "{/* ![a](./b.png) */}",
    ],
)
def test_what_is_no_image_gives_no_figure(tmp_path: Path, written: str) -> None:
    assert _figures(tmp_path, f"Before.\n\n{written}\n\nAfter.\n") == []


def test_each_image_belongs_to_the_chunk_of_its_section(tmp_path: Path) -> None:
    body = "Top.\n\n![](/x.svg)\n\n## One\n\nA.\n\n## Two\n\n![](/img/shop.png)\n\nB.\n"
    _, chunks = _read(tmp_path, body)
    found = {chunk.section_heading: [one.line for one in chunk.figures] for chunk in chunks}
    assert found == {"Arm": [7], "One": [], "Two": [15]}


def test_the_image_of_a_partial_is_found_beside_the_partial(tmp_path: Path) -> None:
    parsed, (chunk,) = _read(
        tmp_path,
        "import Part from '../_shared/part.mdx';\n\nBefore.\n\n<Part />\n",
        **{"docs/_shared/part.mdx": "Text.\n\n![P](./p.png)\n", "docs/_shared/p.png": "image"},
    )
    (figure,) = chunk.figures
    assert (figure.address, figure.line) == ("@site/docs/_shared/p.png", 9)
    assert parsed.notes.warnings == ()


def test_missing_images_are_named_and_the_page_is_indexed(tmp_path: Path) -> None:
    parsed, (chunk,) = _read(tmp_path, "Text.\n\n![A](./gone.png) ![B](/img/lost.png)\n")
    assert chunk.text == "Text.\n\nA B"
    (warning,) = parsed.notes.warnings
    assert all(name in warning for name in ("arm/a.mdx", "gone.png", "/img/lost.png"))
