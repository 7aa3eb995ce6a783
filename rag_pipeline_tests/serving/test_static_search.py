"""The index of the static mode: its numbers are those of the collection."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.static_search import SCRIPT, compare_searches
from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder, find_browser_files
from rag_pipeline.answering.reading.small_talk import KINDS, find_reply
from rag_pipeline.cli.app import app
from rag_pipeline.core.errors import CollectionMissingError, ConfigurationError
from rag_pipeline.core.protocols import ALL_POINTS
from rag_pipeline.core.text.form_words import find_form_terms, find_form_words
from rag_pipeline.core.text.terms import STOP_WORDS, extract_terms
from rag_pipeline.core.vectors import EmbeddingModel
from rag_pipeline.retrieval import Query, open_retriever
from rag_pipeline.retrieval.open_index import OpenIndex
from rag_pipeline.retrieval.retriever import RetrieverOptions
from rag_pipeline.retrieval.search import split_question
from rag_pipeline.serving import static_search
from rag_pipeline.serving.static_search import FOLDER, export_search, pack, quantize, quantize_alike
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rag_pipeline.core.settings import Settings

WIDE = "module-2/2.1-sensors/wide.md"
TABS = "module-2/2.1-sensors/tabs.mdx"
QUESTIONS = [
    "How does a node publish messages on a topic?",
    "What is the difference between a topic and a service?",
    "How far can a laser scanner measure?",
    "Who won the football world cup in 1954?",
    "Who invented the laser scanner?",
    "laser scanner on windows",
    "publish messages with a robot arm",
    "use_sim_time",
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the tiny book and a page with wide characters, which are indexed."""
    made = make_settings(tmp_path_factory.mktemp("book"))
    text = "# Smile\n\n## Robots \U0001f916\n\nA robot smiles. It sees \U0001f600 and waves.\n"
    tabs = (
        "# Mounting\n\n## Screws\n\n<Tabs>\n<TabItem value='arm' label='Arm'>\n\nTurn it left.\n\n"
        "![The screw](/img/screw.png)\n\n![Far](https://other.example/far.png)\n\n"
        "</TabItem>\n</Tabs>\n"
    )
    build_collection(made, make_points(PAGES | {WIDE: text, TABS: tabs}))
    return made


@pytest.fixture(scope="module")
def site(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built site with the index."""
    made = tmp_path_factory.mktemp("site")
    (made / "index.html").touch()
    export_search(settings, made)
    return made


def read_file(site: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the head and the arrays of the index, read as the panel reads them."""
    content = gzip.decompress((site / FOLDER / "index.bin").read_bytes())
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    return head, {
        name: np.frombuffer(content, kind, count, 4 + length + offset)
        for name, (kind, offset, count) in head["arrays"].items()
    }


def test_vectors_are_those_of_the_collection(settings: Settings, site: Path) -> None:
    head, arrays = read_file(site)
    with open_retriever(settings) as retriever, retriever.session.use() as store:
        points = store.scroll(with_vectors=True)
    assert [one["chunk_id"] for one in head["passages"]] == [
        one.payload["chunk_id"] for one in points
    ]
    found = arrays["dense"].reshape(len(points), -1) * arrays["dense_steps"][:, None]
    stored = np.stack([one.vectors.dense for one in points if one.vectors])
    assert np.abs(found - stored).max() < 1e-4
    windows = arrays["windows"].reshape(len(arrays["window_steps"]), -1)
    rows = np.concatenate([one.vectors.windows for one in points if one.vectors])
    cosines = (windows * arrays["window_steps"][:, None] * rows).sum(axis=1)
    assert np.abs(cosines - 1).max() < 2e-3
    assert arrays["window_ends"][-1] == len(rows)


def test_term_weights_are_those_of_the_store(settings: Settings, site: Path) -> None:
    head, arrays = read_file(site)
    ends = [0, *arrays["posting_ends"].tolist()]
    with open_retriever(settings) as retriever, retriever.session.use() as store:
        opened = OpenIndex(store, Bm25Encoder(), lasting=True)
        weights = opened.search_and_weigh([], {ALL_POINTS: head["terms"]})[1][ALL_POINTS]
    for at, term in enumerate(head["terms"]):
        own = arrays["posting_weights"][ends[at] : ends[at + 1]]
        if term in weights:
            highest = arrays["idf"][at] * own.max() / 65535 * 2.2
            assert highest == pytest.approx(weights[term], abs=1e-3)
        else:
            assert own.size == 0


def test_passages_name_their_place_and_count_as_browsers_do(site: Path) -> None:
    head, arrays = read_file(site)
    passage = next(one for one in head["passages"] if one["doc_path"] == WIDE and one["level"] == 2)
    units = passage["text"].encode("utf-16-le")
    sentences = [units[2 * a : 2 * b].decode("utf-16-le") for a, b in passage["sentences"]]
    assert "It sees \U0001f600 and waves." in sentences
    kinds = [kind for kind, _, _ in passage["blocks"]]
    assert kinds[0] == "heading"
    start = passage["blocks"][1][1]
    assert units[2 * start :].decode("utf-16-le").startswith("A robot")
    assert passage["url"].startswith("/book/docs/module-2/2.1-sensors/wide#")
    at = head["passages"].index(passage)
    first = arrays["heading_ends"][at - 1] if at else 0
    named = [
        head["terms"][term] for term in arrays["heading_terms"][first : arrays["heading_ends"][at]]
    ]
    assert named == sorted(set(extract_terms(passage["section"])))


def test_passages_have_their_tabs_and_the_images_of_the_site(site: Path) -> None:
    head, _ = read_file(site)
    passage = next(one for one in head["passages"] if "Turn it left" in one["text"])
    assert (passage["section"], passage["tabs"]) == ("Screws > Arm", ["Arm"])
    [figure] = passage["figures"]
    assert (figure["address"], figure["text"]) == ("/book/img/screw.png", "The screw")
    assert sum("figures" in one for one in head["passages"]) == 1


def test_the_model_of_the_index_and_a_manifest_are_beside_it(site: Path) -> None:
    folder = site / FOLDER
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == static_search.FORMAT
    assert manifest["index_bytes"] == (folder / manifest["index"]).stat().st_size
    assert manifest["model_bytes"] == (folder / manifest["model"]).stat().st_size
    # The graph names the file of weights, and contains no weights of its own.
    assert manifest["model"].encode() in (folder / manifest["graph"]).read_bytes()
    assert (folder / manifest["graph"]).stat().st_size < 200_000
    head, _ = read_file(site)
    assert head["rules"]["weights"]["semantic"] > 0
    assert len(head["word_pieces"]) == 30_522


def test_the_index_of_a_book_is_the_same_each_time(settings: Settings, site: Path) -> None:
    before = (site / FOLDER / "index.bin").read_bytes()
    export_search(settings, site)
    assert (site / FOLDER / "index.bin").read_bytes() == before


def test_arrays_begin_where_typed_arrays_may() -> None:
    content = gzip.decompress(pack({"a": "é"}, {"x": np.zeros(3, np.int8), "y": np.ones(2)}))
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    assert (4 + length) % 8 == 0
    assert head["arrays"] == {"x": ["int8", 0, 3], "y": ["float64", 8, 2]}
    rows, steps = quantize(np.zeros((1, 4), dtype=np.float32))
    assert (rows.any(), steps.tolist()) == (False, [1.0])


def test_rounded_vectors_give_nearly_the_same_scores_as_the_vectors() -> None:
    random = np.random.default_rng(1)
    spread = random.normal(size=(32, 32)) * np.linspace(0.1, 2, 32)
    rows, questions = (
        (random.normal(size=(count, 32)) @ spread).astype(np.float32) for count in (400, 50)
    )

    def measure_error(whole: NDArray[Any], steps: NDArray[np.float32]) -> float:
        errors = questions @ (whole * steps[:, np.newaxis] - rows).T
        return float(np.sqrt((errors**2).mean()))

    plain, steps = quantize(rows)
    alike, same_steps = quantize_alike(rows)
    assert (steps == same_steps).all()
    assert measure_error(alike, steps) < 0.7 * measure_error(plain, steps)
    nothing, _ = quantize_alike(np.zeros((3, 4), dtype=np.float32))
    assert not nothing.any()


def test_a_folder_without_a_site_and_a_missing_index_are_errors(tmp_path: Path) -> None:
    empty = make_settings(tmp_path)
    with pytest.raises(ConfigurationError, match="no built site"):
        export_search(empty, tmp_path)
    (tmp_path / "index.html").touch()
    with pytest.raises(CollectionMissingError):
        export_search(empty, tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_a_model_that_no_browser_runs_is_an_error(
    settings: Settings, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = EmbeddingModel("openai", "text-embedding-3-small", 1536, 8191, None)
    assert find_browser_files(foreign) is None
    monkeypatch.setattr(static_search, "find_browser_files", lambda _: find_browser_files(foreign))
    with pytest.raises(ConfigurationError, match="A browser runs only the local model"):
        export_search(settings, site)
    assert replace(foreign, provider="local") != foreign


def test_the_command_says_what_it_wrote(
    settings: Settings, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("docs_dir", "data_dir", "site_base_url"):
        monkeypatch.setenv(name.upper(), str(getattr(settings, name)))
    monkeypatch.chdir(site)
    printed = CliRunner().invoke(app, ["export-search", str(site), "--json"])
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.stdout)["passages"] > 5


@pytest.mark.site
@pytest.mark.skipif(
    shutil.which("node") is None or not (SCRIPT.parents[1] / "node_modules").is_dir(),
    reason="the packages of the website are not installed",
)
def test_the_browser_finds_what_the_library_finds(settings: Settings) -> None:
    found = compare_searches(settings, QUESTIONS)
    assert found["questions"] == len(QUESTIONS)
    assert found["first"] == found["same_five"] == found["level"] == 1


def test_the_cases_of_the_panel_are_what_the_library_does() -> None:
    path = SCRIPT.parents[1] / "packages/docusaurus-theme-robotutor/tests/static/library.json"
    cases = json.loads(path.read_text("utf-8"))
    assert cases["stop_words"] == sorted(STOP_WORDS)
    for name, value in static_search.collect_rules("", RetrieverOptions()).items():
        assert cases["patterns"].get(name, value) == value
    for case in cases["texts"]:
        assert extract_terms(case["text"]) == case["terms"]
        assert len(case["ids"]) - 2 == LocalEmbedder(workers=1).count_tokens([case["text"]])[0]
    for case in cases["talk"]:
        kind = find_reply(Query(case["text"]))
        assert (kind if kind in KINDS else "") == case["kind"]
    for case in cases["questions"]:
        question = case["question"]
        assert split_question(question) == tuple(case["parts"])
        assert [list(span) for span in find_form_words(question)] == case["form_words"]
        assert sorted(find_form_terms(question)) == case["form_terms"]
