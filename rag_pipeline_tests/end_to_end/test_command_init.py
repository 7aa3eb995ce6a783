"""Tests of `rag-pipeline init` and `rag-pipeline ingest --site`, without Node."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.settings.file import SETTINGS_FILE
from rag_pipeline_tests.end_to_end.command import (
    API,
    CONFIG,
    UNSET,
    Command,
    Outcome,
    assert_one_line,
    finish,
    read_urls,
    write_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = ("search", "joint", "--json")


def add_api(command: Command) -> None:
    """Add a docs plugin with one page to the site."""
    (command.root / "api").mkdir()
    (command.root / "api" / "call.md").write_text("# Call\n\nCall a joint.\n", encoding="utf-8")
    write_config(command, CONFIG.replace("presets", f"{API}, presets"))


def test_init_writes_a_file_with_which_other_commands_work(
    command: Command, run: Callable[..., Outcome]
) -> None:
    outcome = run("init")
    assert outcome.code == 0
    assert "site_base_url         https://e.org/m/" in outcome.out
    assert "Docusaurus's default" in outcome.out
    path = command.root / SETTINGS_FILE
    text = path.read_text(encoding="utf-8").replace("https://e.org/m/", "https://file.org/m/")
    path.write_text(text, encoding="utf-8")
    assert run("ingest").code == 0
    assert read_urls(run(*QUESTION)) == {"https://file.org/m/"}
    assert read_urls(run(*QUESTION, SITE_BASE_URL="https://file.org/m/")) == {"https://file.org/m/"}


def test_init_reports_each_value_as_json(run: Callable[..., Outcome]) -> None:
    record = run("init", "--json").json
    assert record["read_by"] == "rag-pipeline, which did not run it"
    values = {one["setting"]: (one["value"], one["origin"]) for one in record["values"]}
    assert values["site_base_url"] == ("https://e.org/m/", "read")
    assert values["docs_dir"] == ("docs", "default")


def test_init_replaces_a_file_only_with_yes(command: Command, run: Callable[..., Outcome]) -> None:
    assert run("init").code == 0
    assert run("init").code == 0  # nothing would change
    write_config(command, CONFIG.replace("/m/", "/other/"))
    assert_one_line(run("init"), 2, SETTINGS_FILE, "would change", "--yes")
    assert run("init", "--yes").code == 0
    assert "/other/" in (command.root / SETTINGS_FILE).read_text(encoding="utf-8")


@pytest.mark.parametrize(("reply", "code"), [(b"y\n", 0), (b"n\n", 130)])
def test_init_asks_on_a_terminal_before_it_replaces_a_file(
    command: Command, run: Callable[..., Outcome], reply: bytes, code: int
) -> None:
    assert run("init").code == 0
    write_config(command, CONFIG.replace("/m/", "/other/"))
    terminal, stdin = os.openpty()
    os.write(terminal, reply)
    process = command.start("init", stdin=stdin, **UNSET)
    outcome = finish(process)
    for handle in (terminal, stdin):
        os.close(handle)
    assert outcome.code == code
    assert "Replace rag-pipeline.toml?" in outcome.err
    text = (command.root / SETTINGS_FILE).read_text(encoding="utf-8")
    assert ("/other/" in text) == (code == 0)


def test_the_file_remembers_which_of_several_docs_folders_was_chosen(
    command: Command, run: Callable[..., Outcome]
) -> None:
    add_api(command)
    assert run("init", "--docs-plugin", "api").code == 0
    outcome = run("init", "--check", "--json")
    assert outcome.code == 0
    assert outcome.json["values"][0]["value"] == "api"
    assert outcome.json["differences"] == []


def test_init_writes_all_docs_folders_and_ingest_indexes_them(
    command: Command, run: Callable[..., Outcome]
) -> None:
    add_api(command)
    plugin = "plugins: [['content-docs', {id: 'api', path: 'api', routeBasePath: 'reference'}]]"
    write_config(command, CONFIG.replace("presets", f"{plugin}, presets"))
    outcome = run("init")
    assert "source api: api, at /reference of the site" in outcome.out
    assert run("init", "--check").code == 0
    report = run("ingest", "--json").json
    assert report["docs_discovered"] == 4
    record = run("chunks", "--json").json
    urls = {one["doc_path"]: one["url"] for one in record["documents"]}
    assert urls["api/call.md"] == "https://e.org/m/reference/call"
    assert urls["intro.md"] == "https://e.org/m/docs/intro"
    write_config(command, CONFIG.replace("presets", f"{plugin.replace('ence', 's')}, presets"))
    outcome = run("init", "--check")
    assert outcome.code == 1
    assert "DIFFERS source api: the file has name=" in outcome.out
    assert 'route_base_path="refers"' in outcome.out


def test_versions_locales_and_a_blog_are_indexed_in_one_step(
    command: Command, run: Callable[..., Outcome]
) -> None:
    root = command.root
    shutil.copytree(root / "docs", root / "versioned_docs" / "version-1.0")
    (root / "versions.json").write_text('["1.0"]', encoding="utf-8")
    texts = {
        "i18n/fr/docusaurus-plugin-content-docs/version-1.0/intro.md": "# Début\n\nUn joint.\n",
        "blog/2024-01-02-news.md": "# News\n\nA joint.\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text, encoding="utf-8")
    i18n = "i18n: {defaultLocale: 'en', locales: ['en', 'fr']}"
    write_config(command, CONFIG.replace("presets", f"{i18n}, presets"))
    report = run("ingest", "--site", ".", "--json").json
    assert report["docs_discovered"] == (2 * 3 + 1) * 2
    # The second version and the pages without a translation have the same texts.
    assert report["texts_embedded"] + report["embeddings_reused"] == report["chunks_created"]
    assert report["texts_embedded"] < report["embeddings_reused"]
    french = run("search", "joint", "--locale", "fr", "--json").json["chunks"]
    urls = {chunk["citation"]["url"].partition("#")[0] for chunk in french}
    assert "https://e.org/m/fr/docs/intro" in urls
    assert all(url.startswith("https://e.org/m/fr/") for url in urls)
    assert run("init").code == 0
    assert run("ingest", "--json").json["docs_processed"] == 0
    shutil.rmtree(root / "versioned_docs")
    assert_one_line(run("ingest"), 2, "the source docs@1.0:en does not exist", "Restore it")
    outcome = run("init", "--check")
    assert_one_line(outcome, 2, "versions.json", "lists the version 1.0, but its folder")


def test_choosing_one_docs_plugin_removes_the_pages_of_the_others(
    command: Command, run: Callable[..., Outcome]
) -> None:
    add_api(command)
    assert run("ingest", "--site", ".", "--json").json["docs_discovered"] == 4
    arguments = ("ingest", "--site", ".", "--docs-plugin", "default", "--json")
    report = run(*arguments).json
    assert (report["docs_discovered"], report["docs_deleted"]) == (3, 1)
    assert report["texts_embedded"] == 0
    assert run("audit").code == 0
    assert run("ingest", "--json").json["docs_unchanged"] == 3
    report = run("ingest", "--site", ".", "--json").json
    assert (report["docs_discovered"], report["texts_embedded"]) == (4, 0)


def test_a_docs_plugin_that_was_removed_from_the_site_leaves_the_index_after_init(
    command: Command, run: Callable[..., Outcome]
) -> None:
    add_api(command)
    assert run("init").code == 0
    assert run("ingest", "--json").json["docs_discovered"] == 4
    write_config(command, CONFIG)
    assert run("init", "--check").code == 1
    assert run("ingest", "--json").json["docs_unchanged"] == 4
    assert run("init", "--yes").code == 0
    report = run("ingest", "--json").json
    assert (report["docs_discovered"], report["docs_deleted"]) == (3, 1)
    assert (command.root / "api" / "call.md").is_file()
    assert run("audit").code == 0


def test_a_file_that_the_site_has_outgrown_is_named_with_the_command_that_writes_it(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run("init").code == 0
    add_api(command)
    config = CONFIG.replace("/m/", "/other/").replace("presets", f"{API}, presets")
    write_config(command, config.replace("baseUrl", "trailingSlash: true, baseUrl"))
    outcome = run("ingest", "--site", ".")
    assert outcome.code == 0
    for text in (
        f"In {SETTINGS_FILE}, site_base_url is https://e.org/m/. The file is used. If the site",
        f"In {SETTINGS_FILE}, site_trailing_slash is open. The file is used. If the site",
        f"In {SETTINGS_FILE}, sources differs from the site (source docs, source api). The file",
        "was changed, write the file again with `rag-pipeline init",
    ):
        assert text in outcome.err


def test_check_exits_with_1_and_names_the_values_that_differ(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert_one_line(run("init", "--check"), 2, SETTINGS_FILE, "no such file")
    assert run("init").code == 0
    assert run("init", "--check").code == 0
    write_config(command, CONFIG.replace("/m/", "/other/"))
    before = (command.root / SETTINGS_FILE).read_bytes()
    outcome = run("init", "--check")
    assert outcome.code == 1
    line = "DIFFERS site_base_url: the file has https://e.org/m/, the site has https://e.org/other/"
    assert line in outcome.out
    assert (command.root / SETTINGS_FILE).read_bytes() == before


def test_init_ends_with_1_if_a_value_is_not_known(
    command: Command, run: Callable[..., Outcome]
) -> None:
    write_config(command, CONFIG.replace("'/m/'", "read()"))
    outcome = run("init")
    assert outcome.code == 1
    assert "not known" in outcome.out
    assert "Set site_base_url in it" in outcome.out


def test_init_says_which_value_of_the_file_it_keeps_without_knowing_it(
    command: Command, run: Callable[..., Outcome]
) -> None:
    assert run("init").code == 0
    write_config(command, CONFIG.replace("'/m/'", "read()"))
    for arguments in (("--yes",), ("--check",)):
        outcome = run("init", *arguments)
        assert outcome.code == 0
        assert "KEPT site_base_url: the file has https://e.org/m/, and `baseUrl`" in outcome.out


def test_ingest_of_a_site_needs_no_settings(
    command: Command, run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(command, CONFIG.replace("'https://e.org'", "read() || 'https://e.org'"))
    elsewhere = command.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    outcome = run("ingest", "--site", "..")
    assert outcome.code == 0
    assert "guess: `url` is computed" in outcome.err
    assert "init .." in outcome.err
    assert "rag-pipeline query --docs-dir ../docs" in outcome.out
    assert read_urls(run(*QUESTION, "--docs-dir", "../docs")) == {"https://e.org/m/"}
    assert not (command.root / SETTINGS_FILE).exists()


def test_settings_that_are_set_win_over_the_detected_site(
    command: Command, run: Callable[..., Outcome]
) -> None:
    write_config(command, CONFIG.replace("'/m/'", "read()"))
    assert_one_line_at_end(run("ingest", "--site", "."), "`baseUrl` is computed")
    outcome = run("ingest", "--site", ".", SITE_BASE_URL="/mine/")
    assert outcome.code == 0
    assert "The setting SITE_BASE_URL is /mine/. The setting is used." in outcome.err
    assert "SITE_TRAILING_SLASH" not in outcome.err
    assert read_urls(run(*QUESTION, SITE_BASE_URL="/mine/")) == {"/mine/"}
    outcome = run("ingest", "--site", ".", SITE_BASE_URL="/", SOURCES="[]")
    assert "The setting SITE_BASE_URL is /. The setting is used." in outcome.err


def assert_one_line_at_end(outcome: Outcome, text: str) -> None:
    """Check that a command ended with exit code 2 and a last line that contains the text."""
    assert outcome.code == 2
    assert text in outcome.err.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [("--docs-plugin", "api"), ("--run-config",), ("--site", ".", "--docs-dir", "docs")],
)
def test_options_that_contradict_each_other_are_an_error(
    run: Callable[..., Outcome], arguments: tuple[str, ...]
) -> None:
    assert_one_line(run("ingest", *arguments), 2, "--site")
