"""The validation suite: a sound collection passes, and each kind of damage is reported."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import pytest

from rag_pipeline.core.ids import DocId, PointId, make_chunk_id, to_point_id
from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.protocols import StoredPoint
from rag_pipeline.core.rules import AUDIT_CHECKS, CheckReport, Finding
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.core.vectors import EmbeddingModel, EmbeddingSpace
from rag_pipeline.evaluation.pages import to_text
from rag_pipeline.evaluation.validation import (
    PER_CLASS,
    SITE_ADDRESS,
    Probe,
    ValidationSuiteReport,
    derive_probes,
    describe_validation,
    run_validation,
)
from rag_pipeline.retrieval.models import RetrievalResult
from rag_pipeline.retrieval.queries import MAX_QUESTION_CHARS, Mode
from rag_pipeline_tests.answering.factories import make_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rag_pipeline.core.models import Payload
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.queries import Query

TOPICS = ("balance", "sensors", "gait", "planning", "grasping", "speech")
NAMES = ("ankle torque", "gyro drift", "swing phase", "cost map", "friction cone", "wake word")


def build_chunks() -> list[ScoredChunk]:
    chunks = []
    for doc, topic in enumerate(TOPICS):
        for index, name in enumerate(NAMES):
            text = f"{topic.title()} depends on the {name} in experiment {doc}. " * 12
            chunk = make_chunk(text, title=f"All about {topic}", section=f"{name} of {topic}")
            path = f"module-1/{topic}.md"
            metadata = replace(
                chunk.metadata,
                doc_path=path,
                chunk_index=index,
                tags=(topic,),
                chunk_id=make_chunk_id(DocId(path), index),
                url=f"/book/docs/{topic}#{name.replace(' ', '-')}",
            )
            citation = replace(chunk.citation, url=metadata.url)
            chunks.append(
                replace(chunk, chunk_id=metadata.chunk_id, metadata=metadata, citation=citation)
            )
    return chunks


def to_point(chunk: ScoredChunk) -> StoredPoint:
    payload: Payload = {
        **{k: list(v) if isinstance(v, tuple) else v for k, v in asdict(chunk.metadata).items()},
        "text": chunk.text,
    }
    return StoredPoint(to_point_id(chunk.metadata.chunk_id), payload)  # type: ignore[arg-type]  # a chunk id as text


@dataclass
class ListIndex:
    """An in-memory collection whose points are a list."""

    points: list[StoredPoint]
    collection_id: ClassVar = "book-1"
    space: ClassVar = EmbeddingSpace(EmbeddingModel("test", "words", 8, 400), 1)

    def scroll(self) -> list[StoredPoint]:
        return self.points

    def count(self) -> int:
        return len(self.points)


@cache
def find_terms(text: str) -> frozenset[str]:
    """Return the distinct terms of a text, which is compared with each question."""
    return frozenset(extract_terms(text))


@dataclass
class WordRetriever:
    """A retriever that ranks chunks by common words; `spoil` changes its results."""

    chunks: Sequence[ScoredChunk]
    spoil: Callable[[list[ScoredChunk]], list[ScoredChunk]] = list
    damaged: Sequence[StoredPoint] = ()

    @property
    def session(self) -> WordRetriever:
        return self

    @contextmanager
    def use(self) -> Iterator[ListIndex]:
        yield ListIndex([*(to_point(chunk) for chunk in self.chunks), *self.damaged])

    def retrieve(self, query: Query) -> RetrievalResult:
        query.check()
        asked = set(extract_terms(query.question))

        def score(chunk: ScoredChunk) -> float:
            held = find_terms(f"{chunk.metadata.section_heading} {chunk.text}")
            return len(asked & held) / max(1, len(asked))

        ranked = sorted(self.chunks, key=lambda chunk: (-score(chunk), chunk.chunk_id))[:5]
        hits = self.spoil([replace(chunk, score=score(chunk)) for chunk in ranked])
        return RetrievalResult(tuple(hits), query, Mode.NORMAL, len(self.chunks))

    def retrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        return [self.retrieve(query) for query in queries]


def run(
    retriever: WordRetriever, audited: CheckReport | None = None, site: str | None = None
) -> ValidationSuiteReport:
    return run_validation(retriever, load_settings(), audited, site)  # type: ignore[arg-type]  # a retriever by its shape


@cache
def run_sound() -> ValidationSuiteReport:
    """Return the report on a sound collection."""
    return run(WordRetriever(build_chunks()))


@cache
def run_reversed() -> ValidationSuiteReport:
    """Return the report on a search whose results are in the wrong order."""
    return run(WordRetriever(build_chunks(), lambda hits: hits[::-1]))


def find_kinds(report: ValidationSuiteReport) -> set[str]:
    return {finding.kind for finding in report.found.findings}


def test_a_sound_collection_passes_every_class_of_queries() -> None:
    report = run_sound()
    assert report.found == CheckReport("book-1", 6, 36, ())
    assert report.passed
    assert {probe.kind for probe in report.probes} == {"keyword", "phrase", "complex", "edge"}
    assert report.relevant_share == 1.0


def test_probes_come_from_the_book_and_are_reproducible() -> None:
    chunks = [(chunk.metadata, chunk.text) for chunk in build_chunks()]
    probes = derive_probes(chunks)
    assert probes == derive_probes(list(reversed(chunks)))
    for kind in ("keyword", "phrase", "complex"):
        assert 0 < sum(probe.kind == kind for probe in probes) <= PER_CLASS
    questions = [probe.question for probe in probes if probe.kind == "edge"]
    assert {"a", "123", "special@chars!"} <= set(questions)
    assert any(500 < len(question) <= 5_000 for question in questions)
    assert Probe("keyword", "gait", expected_term="gait") in probes


@pytest.mark.parametrize("other", [{"is_latest": False}, {"is_default_locale": False}])
def test_probes_come_from_what_a_search_covers_by_default(other: dict[str, bool]) -> None:
    chunks = [(chunk.metadata, chunk.text) for chunk in build_chunks()]
    hidden = make_chunk("Words of another edition. " * 40, title="Other", section="Hidden words")
    left_out = [
        (replace(hidden.metadata, doc_path=f"a/{at}.md", **other), hidden.text) for at in range(9)
    ]
    assert derive_probes([*chunks, *left_out]) == derive_probes(chunks)


def test_an_empty_collection_has_only_edge_probes() -> None:
    assert {probe.kind for probe in derive_probes([])} == {"edge"}


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (None, "rank_order"),
        (lambda hits: [replace(hit, score=1.5) for hit in hits], "score_bounds"),
        (lambda hits: [hits[0], hits[0]], "unique_ids"),
        (lambda hits: [replace(hit, text=" ") for hit in hits], "required_fields"),
    ],
)
def test_results_that_break_a_rule_are_reported(
    spoil: Callable[[list[ScoredChunk]], list[ScoredChunk]] | None, rule: str
) -> None:
    report = run(WordRetriever(build_chunks(), spoil)) if spoil else run_reversed()
    assert not report.passed
    assert rule in find_kinds(report)
    assert rule in report.checks


def test_results_that_differ_between_runs_are_reported() -> None:
    calls: list[int] = []

    def shrink(hits: list[ScoredChunk]) -> list[ScoredChunk]:
        calls.append(1)
        return hits[: 5 - len(calls) % 2]

    report = run(WordRetriever(build_chunks(), shrink))
    assert "deterministic" in find_kinds(report)


def test_a_search_that_finds_nothing_fails() -> None:
    report = run(WordRetriever(build_chunks(), lambda _: []))
    assert report.relevant_share == 0.0
    assert find_kinds(report) == {"relevance"}


def test_a_damaged_result_is_reported_with_all_other_problems() -> None:
    def read(_: list[ScoredChunk]) -> list[ScoredChunk]:
        return [replace(hit, metadata=read_metadata({})) for hit in build_chunks()]

    report = run(WordRetriever(build_chunks(), read))
    assert len(report.probes) > PER_CLASS
    (finding,) = report.probes[0].findings
    assert finding.kind == "readable"
    assert "the payload field chunk_id has no value" in finding.detail
    assert not report.passed
    assert report.performance["batch_latency_ms"] is None  # all questions at once have no time
    assert report.performance["targets"]["batch_latency_ms"]["met"] is False


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("tags", None, "readable"),
        ("chunk_id", "no id", "readable"),
        ("url", "", "citation"),
        ("url", "/book/docs/balance#a", "addresses"),
    ],
)
def test_a_damaged_point_is_found_in_the_whole_collection(
    field: str, value: object, kind: str
) -> None:
    payload = {**to_point(build_chunks()[7]).payload, "doc_path": "other.md", field: value}
    damaged = StoredPoint(PointId(5), payload)  # type: ignore[arg-type]  # damaged on purpose
    report = run(WordRetriever(build_chunks(), damaged=[damaged]))
    assert find_kinds(report) - {"addresses"} == {kind} - {"addresses"}
    assert kind in find_kinds(report)


def test_the_findings_of_an_audit_come_first() -> None:
    finding = Finding("stray", "gone.md", "00ff", "no document")
    report = run(WordRetriever(build_chunks()), CheckReport("book-1", 6, 36, (finding,)))
    assert report.found.findings == (finding,)
    assert not report.passed
    assert set(AUDIT_CHECKS) <= set(report.checks)
    assert not set(AUDIT_CHECKS) & set(run_sound().checks)


def test_a_title_longer_than_a_question_may_be_gives_a_shorter_query() -> None:
    chunk = make_chunk(
        "Balance depends on the ankle.", title="long " * 2000, section="word " * 2000
    )
    questions = [probe.question for probe in derive_probes([(chunk.metadata, chunk.text)])]
    assert max(len(question) for question in questions) == MAX_QUESTION_CHARS


def test_broken_addresses_fail_the_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_BASE_URL", "/book/")
    (tmp_path / "docs").mkdir()
    for topic in TOPICS[1:]:
        ids = "".join(f'<h2 id="{name.replace(" ", "-")}">x</h2>' for name in NAMES)
        (tmp_path / "docs" / f"{topic}.html").write_text(ids, "utf-8")
    report = run(WordRetriever(build_chunks()), site=str(tmp_path))
    assert (report.addresses.page_count, report.addresses.address_count) == (6, 36)
    assert [finding.kind for finding in report.found.findings] == [SITE_ADDRESS] * len(NAMES)
    assert "6 broken" in to_text(describe_validation(report))
