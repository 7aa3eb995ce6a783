"""A report as one HTML page that needs nothing else: no script, no font, no request.

Belongs here: the page. Does not belong here: its plots (plots), its style (report_style).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.matching import DOCUMENT, SECTION, hits_section
from rag_pipeline.evaluation.metrics import NDCG, RECALL, SUCCESS
from rag_pipeline.evaluation.plots import draw_history, draw_ranks, draw_scores, to_inline_svg
from rag_pipeline.evaluation.report_style import PAGE_STYLE
from rag_pipeline.evaluation.report_text import describe_rest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.evaluation.gates import GateResult
    from rag_pipeline.evaluation.records import (
        EvaluationReport,
        ExpectedPlace,
        Fingerprint,
        Interval,
        QuestionResult,
        RetrievedChunk,
        Summary,
    )

_SHOWN_CHUNKS: Final = 5
_GROUP_COLUMNS: Final = ((DOCUMENT, SUCCESS), (SECTION, SUCCESS), (SECTION, NDCG))
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(
    report: EvaluationReport,
    history: Sequence[EvaluationReport],
    gates: Sequence[GateResult] = (),
) -> str:
    """Draw a report as a self-contained page for wide and narrow, light and dark screens.

    Args:
        report: The evaluation to show.
        history: Earlier ones and this one, oldest first; those of another golden set are left out
            of the plot.
        gates: Verdicts to show on top.
    """
    golden = report.fingerprint.golden_version
    runs = [run for run in history if run.fingerprint.golden_version == golden] or [report]
    body = "".join(
        (
            "<header><h1>Retrieval evaluation</h1>",
            f"<p>{escape(report.created_at[:19])} UTC, {len(report.questions)} questions, ",
            f"{report.selected_text.case_count} selected-text cases</p></header>",
            _render_gates(gates),
            "<section><h2>Measures</h2>",
            _render_measures({"all questions": report.overall, **report.halves}),
            "<ul>",
            *(f"<li>{escape(line)}</li>" for line in describe_rest(report)),
            "</ul></section><section><h2>Plots</h2><div class='plots'>",
            f"<figure>{to_inline_svg(draw_history(runs), 'history')}</figure>",
            f"<figure>{to_inline_svg(draw_ranks(report), 'ranks')}</figure>",
            f"<figure>{to_inline_svg(draw_scores(report), 'scores')}</figure></div></section>",
            _render_groups("Categories", report.categories),
            _render_groups("Modules", report.modules),
            _render_questions(report.questions),
            _render_selections(report),
            _render_fingerprint(report.fingerprint),
        )
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>Retrieval evaluation</title><style>{PAGE_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _render_gates(gates: Sequence[GateResult]) -> str:
    if not gates:
        return ""
    kinds = {"passed": "good", "failed": "bad", "not measured": "near"}
    items = "".join(
        f"<li class='{kinds[gate.verdict]}'><b>{gate.verdict}</b> "
        f"<code>{escape(gate.name)}</code> {escape(gate.sentence)}</li>"
        for gate in gates
    )
    return f"<section><h2>Gates</h2><ul class='gates'>{items}</ul></section>"


def _render_measures(columns: Mapping[str, Summary]) -> str:
    first = next(iter(columns.values()))
    rows = (
        (f"{measure}, {level}", [one.get(level, {}).get(measure) for one in columns.values()])
        for level, values in first.items()
        for measure in values
    )
    return _render_table(["measure", *columns], rows)


def _render_groups(title: str, groups: Mapping[str, Summary]) -> str:
    rows = (
        (name, [summary.get(level, {}).get(measure) for level, measure in _GROUP_COLUMNS])
        for name, summary in groups.items()
    )
    heads = ["group", *(f"{measure}, {level}" for level, measure in _GROUP_COLUMNS)]
    return f"<section><h2>{escape(title)}</h2>{_render_table(heads, rows)}</section>"


def _render_table(
    heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Interval | None]]]
) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in heads)
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>"
        + "".join(
            f"<td data-label='{escape(label)}'>{_render_interval(cell)}</td>"
            for label, cell in zip(heads[1:], cells, strict=True)
        )
        + "</tr>"
        for name, cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _render_interval(interval: Interval | None) -> str:
    if interval is None:
        return "none"
    spread = f"{interval.low:.2f} to {interval.high:.2f}, n={interval.count}"
    return f"<b>{interval.mean:.3f}</b> <small>{spread}</small>"


def _render_questions(questions: Sequence[QuestionResult]) -> str:
    """Questions in three folds, the worst first and open."""
    folds: dict[str, list[QuestionResult]] = {
        "Flagged: recall@5 below 0.5, or failed": [],
        "Right page, wrong section; or wrongly judged": [],
        "Right": [],
    }
    bad, poor, right = folds.values()
    for question in questions:
        misjudged = question.refused is not None and question.refused is question.answerable
        missed = question.scores.get(SECTION, {}).get(SUCCESS, 1.0) < 1
        if question.flagged or question.error is not None:
            bad.append(question)
        else:
            (poor if misjudged or missed else right).append(question)
    parts = [
        f"<details{' open' if group is bad else ''}><summary>{title} ({len(group)})</summary>"
        f"{''.join(_render_question(question) for question in group)}</details>"
        for title, group in folds.items()
    ]
    return f"<section><h2>Questions</h2>{''.join(parts)}</section>"


def _render_question(question: QuestionResult) -> str:
    badges = [question.category, f"{question.half} half", *question.modules]
    badges += ["all parts needed"] if question.all_of else []
    if question.refused is not None:
        badges.append("refused" if question.refused else "context sufficient")
    marks = "".join(f"<span class='badge'>{escape(badge)}</span>" for badge in badges)
    if question.flagged:
        marks = f"<span class='badge bad'>{RECALL} below 0.5</span>{marks}"
    error = f"<p class='bad'>{escape(question.error)}</p>" if question.error else ""
    values = ", ".join(
        f"{level} {measure} {value:.2f}"
        for level, scores in question.scores.items()
        for measure, value in scores.items()
        if measure in {RECALL, NDCG} and level != "token"
    )
    expected = "".join(_render_expected(place) for place in question.expected)
    retrieved = "".join(
        _render_chunk(chunk, question.expected) for chunk in question.retrieved[:_SHOWN_CHUNKS]
    )
    return (
        f"<article><h3>{escape(question.question)}</h3><p>{marks}</p>{error}"
        f"<p><small>{escape(question.query_id)} {escape(values)}</small></p><div class='pair'>"
        f"<div><h4>Expected</h4><ul>{expected or '<li>not in the book</li>'}</ul></div>"
        f"<div><h4>Retrieved</h4><ol>{retrieved or '<li>nothing</li>'}</ol></div></div></article>"
    )


def _render_expected(place: ExpectedPlace) -> str:
    rank = "not found" if place.section_rank is None else f"rank {place.section_rank}"
    kind = "bad" if place.section_rank is None else "good"
    if place.section_rank is not None and place.section_rank > _SHOWN_CHUNKS:
        kind = "near"
    group = f" (part {escape(place.group)})" if place.group else ""
    return (
        f"<li class='{kind}'><code>"
        f"{escape(place.doc_path)}</code> {escape(place.section_heading)}{group}: {rank}</li>"
    )


def _render_chunk(chunk: RetrievedChunk, expected: Sequence[ExpectedPlace]) -> str:
    hit = any(hits_section(chunk, place) for place in expected)
    near = any(place.doc_path == chunk.doc_path for place in expected)
    kind = "good" if hit else "near" if near else ""
    path = " > ".join(chunk.heading_breadcrumb)
    return (
        f"<li class='{kind}'><code>{escape(chunk.doc_path)}</code> {escape(path)} "
        f"<small>score {chunk.score:.3f}</small><p class='excerpt'>{escape(chunk.excerpt)}</p></li>"
    )


def _render_selections(report: EvaluationReport) -> str:
    runs = [run for run in report.selected_text_runs if run.leaks or run.error]
    items = "".join(
        f"<li class='bad'><code>{escape(run.case_id)}</code> "
        f"{escape(run.error or 'returned: ' + ' | '.join(run.leaks))}</li>"
        for run in runs
    )
    content = f"<ul>{items}</ul>" if items else "<p>No case leaked or failed.</p>"
    return f"<section><h2>Selected text</h2>{content}</section>"


def _render_fingerprint(fingerprint: Fingerprint) -> str:
    facts = {
        "corpus": fingerprint.corpus_version,
        "golden set": fingerprint.golden_version,
        "format": str(fingerprint.format_version),
        "model": fingerprint.model,
        "commit": fingerprint.commit or "not in git",
        **fingerprint.settings,
    }
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
    )
    return (
        "<section><details><summary>What this result depends on</summary>"
        f"<dl>{rows}</dl></details></section>"
    )
