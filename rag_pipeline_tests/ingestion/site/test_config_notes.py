"""Tests of the notes about a site's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.ingestion.site.detection import find_config_notes
from rag_pipeline_tests.book import make_book

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("module.exports = {markdown: {mermaid: true}};", []),
        ("export default {markdown: {format: 'mdx'}, future: {format: 'md'}};", []),
        ("export default {markdown: {hooks: {a: 1}, format: 'detect'}};", ["detect"]),
        ("// markdown: {format: 'md'}\n/* parseFrontMatter: x */\nexport default {};", []),
        (
            "export default {markdown: {parseFrontMatter: async (params) => params}};",
            ["parseFrontMatter"],
        ),
        (
            'export default {markdown: {\n  async parseFrontMatter(params) {}, format: "md"}};',
            ["to md", "parseFrontMatter"],
        ),
        ("export default {markdown: {preprocessor: require('./own')}};", ["preprocessor"]),
    ],
)
def test_settings_that_the_pipeline_does_not_follow_are_noted(
    tmp_path: Path, config: str, named: list[str]
) -> None:
    (tmp_path / "docusaurus.config.ts").write_text(config, encoding="utf-8")
    notes = find_config_notes(tmp_path / "docs", SiteSettings())
    assert len(notes) == len(named)
    for note, name in zip(notes, named, strict=True):
        assert note.startswith("docusaurus.config.ts sets markdown.")
        assert name in note


def test_the_setting_of_the_site_is_compared(tmp_path: Path) -> None:
    (tmp_path / "docusaurus.config.js").write_text("module.exports = {markdown: {format: 'md'}}")
    docs_dir = tmp_path / "content" / "docs"
    assert find_config_notes(docs_dir, SiteSettings(markdown_format=MarkdownFormat.MD)) == ()
    assert len(find_config_notes(docs_dir, SiteSettings())) == 1


def test_the_report_of_an_ingestion_contains_the_notes(tmp_path: Path) -> None:
    book = make_book(tmp_path, memory=True)
    (tmp_path / "docusaurus.config.js").write_text(
        "module.exports = {markdown: {parseFrontMatter: y}}"
    )
    (warning,) = book.ingest().warnings
    assert "parseFrontMatter" in warning
