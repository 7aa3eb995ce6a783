"""The addresses of all pages of a site with versions, locales, blogs and pages.

`docusaurus-sources-truth.json` contains the files of the site, and the pages that Docusaurus 3.10.2
makes from them: locale, file and address of each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.site.detection import detect_site

_TRUTH: Final = Path(__file__).parents[2] / "fixtures" / "docusaurus-sources-truth.json"
_UNTRANSLATED: Final = "it"
"""A locale without a translated page. It is left out."""


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of the site, and the content of the file."""
    root, truth = tmp_path_factory.mktemp("site"), json.loads(_TRUTH.read_text(encoding="utf-8"))
    (root / ".git").mkdir()
    for name, text in truth["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "website", truth


def test_every_page_has_the_address_that_docusaurus_gives_it(
    truth: tuple[Path, dict[str, Any]],
) -> None:
    root, expected = truth
    site = detect_site(root, lambda _: None, run_config=False)
    discovery = discover_docs(site.docs_dir, sources=site.sources)
    assert not discovery.failures
    found = {
        (
            doc.source.locale if doc.source else None,
            f"@site/{Path(os.path.relpath(doc.path, root)).as_posix()}",
            unquote(parse_doc(doc, site.config.site).document.url).removeprefix("https://e.org"),
        )
        for doc in discovery.docs
    }
    pages = {
        (locale, source, unquote(permalink))
        for locale, source, permalink in expected["pages"]
        if locale != _UNTRANSLATED
    }
    assert found == pages
    assert len(pages) == len(discovery.docs)


def test_a_locale_that_only_repeats_the_default_one_is_named(
    truth: tuple[Path, dict[str, Any]],
) -> None:
    (note,) = detect_site(truth[0], lambda _: None, run_config=False).notes
    assert f" {_UNTRANSLATED} " in note
