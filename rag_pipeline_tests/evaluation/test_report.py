"""The evaluation report: its measures, its files, its text and its HTML page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import EvaluationFileError
from rag_pipeline.evaluation.gates import check_gates
from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery
from rag_pipeline.evaluation.pages import to_markdown, to_text
from rag_pipeline.evaluation.records import dump_record
from rag_pipeline.evaluation.rendering import (
    describe_gates,
    load_baseline,
    load_history,
    load_report,
    render_html,
    write_report,
)
from rag_pipeline_tests.evaluation.generated_book import (
    DOCUMENTS,
    GOLDEN,
    KnowingRetriever,
    RaisingRetriever,
    RandomRetriever,
    evaluate_generated_book,
    evaluate_once,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.records import EvaluationReport, Summary
    from rag_pipeline.retrieval import Query, RetrievalResult

VOID_TAGS = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = "<script>alert('x')</script><img src=http://evil.example/x> & \"quoted\""


@pytest.fixture(scope="module")
def report() -> EvaluationReport:
    return evaluate_once(KnowingRetriever)


class PageReader(HTMLParser):
    """A parser that checks the nesting of tags and collects tags, addresses, ids and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a start tag with its addresses and its id."""
        self.tags.add(tag)
        if tag not in VOID_TAGS:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "srcset", "action", "data", "poster"}:
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        """Check that an end tag closes the innermost open tag."""
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Record the text of the page."""
        self.text += data


def read_page(html: str) -> PageReader:
    reader = PageReader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def assert_self_contained(html: str) -> PageReader:
    reader = read_page(html)
    assert not re.search(r"(?<![\w-])(?:https?:)?//[\w.-]+", re.sub(r"<p>.*?</p>", "", html))
    assert "@import" not in html
    assert "url(" not in html
    assert all(address.startswith("#") for address in reader.addresses)
    assert reader.tags.isdisjoint({"script", "link", "iframe", "img", "object", "embed"})
    assert len(reader.ids) == len(set(reader.ids))
    return reader


def test_every_question_is_reported_in_order_with_all_measures(report: EvaluationReport) -> None:
    assert [one.query_id for one in report.questions] == [one.id for one in GOLDEN.queries]
    ranked = ["Success@5", "recall@5", "R@5", "P@5", "RR@10", "nDCG@10"]
    budgets = ["Success@1000tok", "Success@2000tok"]
    for question in report.questions:
        if question.answerable:
            assert set(question.scores) == {"document", "section"}
            assert set(question.scores["section"]) == {*ranked, *budgets}
        else:
            assert question.scores == {}


def test_each_group_counts_its_questions(report: EvaluationReport) -> None:
    def count(groups: dict[str, Summary]) -> dict[str, int]:
        return {name: one["document"]["Success@5"].count for name, one in groups.items()}

    assert count({"all": report.overall}) == {"all": 48}
    assert count(report.halves) == {"report": 24, "tune": 24}
    assert count(report.categories) == {"fact": 32, "how-to": 16}
    assert set(report.modules) == {"module-1", "module-2", "module-3", "module-4"}


def test_a_cross_module_question_counts_in_each_of_its_modules() -> None:
    first, second = DOCUMENTS[0].document, DOCUMENTS[1].document
    query = GoldenQuery(
        "cross",
        GOLDEN.queries[0].question,
        (
            ExpectedSection(first.doc_path, "Part 0 of page 0", "one"),
            ExpectedSection(second.doc_path, "Part 0 of page 1", "two"),
        ),
        all_of=True,
    )
    report = evaluate_generated_book(KnowingRetriever(), golden=replace(GOLDEN, queries=(query,)))
    assert report.questions[0].modules == ("module-1", "module-2")
    assert set(report.modules) == {"module-1", "module-2"}
    assert report.questions[0].expected[0].section_rank == 1


def test_refusals_are_counted(report: EvaluationReport) -> None:
    scores = report.refusal["all"]
    assert scores.precision.mean == 1.0
    assert (scores.recall.mean, scores.recall.count) == (1.0, 12)
    assert (scores.answered.mean, scores.answered.count) == (1.0, 48)


def test_a_question_is_flagged_by_recall_at_document_level() -> None:
    questions = evaluate_once(RandomRetriever).questions
    missed = [one for one in questions if one.answerable and not one.scores["document"]["recall@5"]]
    assert missed
    assert [one for one in questions if one.flagged] == missed
    found = [one for one in questions if one.answerable and one not in missed]
    assert any(not one.scores["section"]["recall@5"] for one in found)


def test_a_failed_question_is_a_miss_with_its_error_recorded() -> None:
    class FailingOnce(KnowingRetriever):
        def retrieve(self, query: Query) -> RetrievalResult:
            if query.question == GOLDEN.queries[3].question:
                raise TimeoutError("too slow")
            return super().retrieve(query)

    report = evaluate_generated_book(FailingOnce())
    failed = report.questions[3]
    assert failed.error == "timeout error: too slow"
    assert failed.flagged
    assert set(failed.scores["document"].values()) == {0.0}
    assert report.failure_count == 1
    assert report.overall["document"]["Success@5"].mean == pytest.approx(47 / 48)


@pytest.mark.slow
def test_a_report_reads_back_as_it_was_written(tmp_path: Path, report: EvaluationReport) -> None:
    write_report(report, tmp_path)
    path = tmp_path / "report.json"
    assert load_report(path) == report
    assert path.read_bytes() == dump_record(report)
    later = replace(report, created_at="2999-01-01T00:00:00.000000+00:00")
    write_report(later, tmp_path)
    assert load_history(tmp_path) == (strip(report), strip(later))
    assert load_report(path) == later


@pytest.mark.slow
def test_a_damaged_report_is_refused_and_a_damaged_history_entry_is_skipped(
    tmp_path: Path,
    report: EvaluationReport,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_report(report, tmp_path)
    path = tmp_path / "report.json"
    (tmp_path / "history" / "0.json").write_text("{")
    assert load_history(tmp_path) == (strip(report),)
    assert "0.json" in caplog.text
    assert capsys.readouterr().out == ""  # only the document of --json may be printed there
    path.write_text('{"report_version": 1}')
    with pytest.raises(EvaluationFileError, match=r"report\.json"):
        load_report(path)
    with pytest.raises(EvaluationFileError, match="baseline"):
        load_baseline(_write(tmp_path / "baseline.json", "[]"))
    other = dump_record(replace(report, report_version=99))
    with pytest.raises(EvaluationFileError, match="report_version: Input should be 1"):
        load_report(_write(tmp_path / "other.json", other.decode()))


def strip(report: EvaluationReport) -> EvaluationReport:
    return replace(report, questions=())


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_page_is_self_contained_and_shows_the_gates(report: EvaluationReport) -> None:
    gates = check_gates(report, None)
    reader = assert_self_contained(render_html(report, [report], gates))
    assert all(gate.name in reader.text for gate in gates)
    assert "---- no_loss_document_success_at_5" in reader.text
    assert {"table", "details"} <= reader.tags
    assert GOLDEN.queries[0].question in reader.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "retriever",
    [RandomRetriever(), RaisingRetriever()],
    ids=["random", "raising"],
)
def test_the_page_of_a_bad_run_is_well_formed_and_shows_its_flags(
    retriever: KnowingRetriever,
) -> None:
    report = evaluate_generated_book(retriever)
    reader = assert_self_contained(render_html(report, []))
    flagged = sum(one.flagged for one in report.questions)
    assert reader.text.count("recall@5 below 0.5") >= flagged
    if isinstance(retriever, RaisingRetriever):
        assert "connection error: no store for" in reader.text


def test_the_page_escapes_all_text_from_outside(report: EvaluationReport) -> None:
    first = report.questions[0]
    chunk = replace(
        first.retrieved[0],
        doc_path=HOSTILE,
        section_heading=HOSTILE,
        heading_breadcrumb=(HOSTILE,),
        excerpt=HOSTILE,
    )
    place = replace(first.expected[0], doc_path=HOSTILE, section_heading=HOSTILE, group=HOSTILE)
    question = replace(
        first,
        query_id=HOSTILE,
        question=HOSTILE,
        category=HOSTILE,
        modules=(HOSTILE,),
        expected=(place,),
        retrieved=(chunk,),
        error=HOSTILE,
    )
    hostile = replace(
        report,
        questions=(question,),
        categories={HOSTILE: report.overall},
        modules={HOSTILE: report.overall},
        halves={HOSTILE: report.overall},
        fingerprint=replace(report.fingerprint, model=HOSTILE, settings={HOSTILE: HOSTILE}),
    )
    gates = [replace(check_gates(report, None)[0], name=HOSTILE, sentence=HOSTILE)]
    html = render_html(hostile, [hostile], gates)
    reader = read_page(html)
    assert reader.tags.isdisjoint({"script", "img"})
    assert reader.text.count("<script>") >= 15
    assert "data-label=" in html


@pytest.mark.slow
def test_evaluations_of_another_golden_set_are_not_shown(
    report: EvaluationReport,
) -> None:
    other = replace(report, fingerprint=replace(report.fingerprint, golden_version="other"))
    assert render_html(report, [other, report]) == render_html(report, [report])


def test_the_text_shows_both_halves_with_intervals(report: EvaluationReport) -> None:
    text = to_text(report.describe_measures())
    share = r"1\.000 \[0\.\d+, 1\.000\] n="
    assert re.search(rf"document +Success@5 +{share}48 +{share}24 +{share}24\n", text)
    assert re.search(r"report +refused questions without an answer in the book +1\.000 ", text)
    assert text.endswith("failures: 0")
    table = to_markdown(report.describe_measures()[:1]).splitlines()
    assert table[0] == "| level | measure | all | report | tune |"
    assert len({line.count("|") for line in table}) == 1


def test_the_verdict_comes_first_and_the_failed_gates_next(report: EvaluationReport) -> None:
    gates = check_gates(report, None)
    lines = to_text(describe_gates(report, gates)).splitlines()
    assert lines[0] == f"PASSED: none of the {len(gates)} gates failed."
    assert any(line.startswith("pass success_at_5: ") for line in lines)
    assert any(line.startswith("---- no_loss_document_success_at_5: ") for line in lines)
    assert len(lines) == 1 + len(gates)
    broken = [*gates[:-1], replace(gates[-1], passed=False, value=0.5)]
    lines = to_text(describe_gates(report, broken)).splitlines()
    assert lines[0] == f"FAILED: 1 of {len(gates)} gates failed."
    assert lines[1].startswith(f"FAIL {gates[-1].name}: ")


def test_the_text_names_the_first_failures_with_their_cause(report: EvaluationReport) -> None:
    questions = tuple(
        replace(question, error=f"StoreError: broken\nat {place}" if place % 2 else None)
        for place, question in enumerate(report.questions)
    )
    failed = replace(report, questions=questions, failure_count=len(questions) // 2)
    lines = to_text(describe_gates(failed, ())).splitlines()
    assert lines[:2] == ["No gates were checked.", f"Failed questions: {len(questions) // 2}"]
    names = [f"{question.query_id}: StoreError: broken" for question in questions[1:6:2]]
    assert lines[-3:] == names
