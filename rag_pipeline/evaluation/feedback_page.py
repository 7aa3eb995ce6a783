"""The page for authors: what readers asked, what the book did not answer, and how they rated it.

The page is one HTML file without scripts or requests. Its download of all questions is inside it.
"""

from __future__ import annotations

import base64
import csv
import io
from html import escape
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.evaluation.feedback import (
    group_unanswered,
    judge_goal,
    name_reason,
    report_feedback,
    show_part,
    show_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.feedback import (
        FeedbackReport,
        LogEntries,
        QuestionCluster,
        UnansweredReport,
    )

PAGE_NAME: Final = "feedback.html"

_LEVELS: Final = {
    "answered": "answered",
    "closest_passages": "only close passages",
    "not_covered": "not in the book",
    "reply": "greetings and the like",
}
"""The words for each level of answers, in the order of the bars."""

_COLUMNS: Final = (
    *("asked_at", "level", "kind", "reason", "question", "search_question", "rating", "note"),
    *("tags", "sources", "confidence", "latency_ms", "answer_id"),
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_SHOWN_QUESTIONS: Final = 8
_CSS: Final = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6474; --line: #d9dee6; --back: #fff;
  --card: #f5f7fa; --answered: #2f9e6e; --close: #d98a1f; --missing: #c8504b; --reply: #8b95a5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf2; --soft: #a3adbd; --line: #39414e;
  --back: #14181f; --card: #1d232c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1rem 4rem; background: var(--back);
  color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; }
p { margin: .5rem 0; }
small, .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; margin: .75rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .75rem .4rem 0; text-align: left;
  vertical-align: top; }
th { font-weight: 600; }
td.number { text-align: right; white-space: nowrap; }
.scroll { overflow-x: auto; } .scroll table { min-width: 42rem; }
.bar { display: flex; height: .9rem; min-width: 8rem; border-radius: 4px; overflow: hidden;
  background: var(--line); }
.answered { background: var(--answered); } .closest_passages { background: var(--close); }
.not_covered { background: var(--missing); } .reply { background: var(--reply); }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px;
  margin-right: .4rem; }
.group { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .75rem 1rem; margin: .75rem 0; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
a { color: inherit; }
.button { display: inline-block; border: 1px solid var(--line); border-radius: 6px;
  padding: .4rem .8rem; text-decoration: none; background: var(--card); }
"""


def write_page(
    settings: Settings,
    entries: LogEntries,
    unanswered: UnansweredReport | None = None,
    path: Path | None = None,
) -> Path:
    """Write the page about the question log, and return its path.

    Args:
        settings: The settings of the book, to group questions and to name the default file.
        entries: The entries of the question log.
        unanswered: The grouped questions. None groups them now. If the index cannot be read then,
            the page says why and has no groups.
        path: The file. None writes `feedback.html` into the state folder of the book.

    Raises:
        OSError: The file cannot be written.
    """
    problem = ""
    if unanswered is None:
        try:
            unanswered = group_unanswered(settings, entries)
        except RagPipelineError as error:
            problem = error.public_message
    page = render_page(entries, unanswered, settings.assistant_name, problem)
    target = path or settings.state_dir / PAGE_NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(target, page)
    return target


def render_page(
    entries: LogEntries, unanswered: UnansweredReport | None, name: str, problem: str = ""
) -> str:
    """Return the page as HTML.

    Args:
        entries: The entries of the question log, oldest answer first.
        unanswered: The grouped questions without an answer; None if they could not be grouped.
        name: Name of the assistant.
        problem: Why the questions could not be grouped.
    """
    report = report_feedback(entries.answers, entries.ratings)
    body = [f"<h1>What readers asked {escape(name)}</h1>", *_render_summary(report, entries)]
    if entries.answers:
        body += _render_weeks(report)
        body += _render_unanswered(unanswered, problem)
        body += _render_sections(report)
        body += _render_words(report)
        body += _render_download(entries)
    title = f"Questions to {escape(name)}"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="robots" content="noindex">',
            f"<title>{title}</title>\n<style>{_CSS}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def list_questions(entries: LogEntries) -> str:
    """Return all entries of the log as CSV, oldest first.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    ratings = {one.answer_id: one for one in entries.ratings}
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(_COLUMNS)
    for one in entries.answers:
        rating = ratings.get(one.answer_id)
        values = (
            one.asked_at.isoformat(timespec="seconds"),
            one.level,
            one.kind,
            one.reason,
            one.question,
            one.search_question,
            rating.rating if rating else None,
            rating.note if rating else None,
            " ".join(rating.tags) if rating else None,
            " ".join(one.sources),
            one.confidence,
            round(one.latency_ms),
            one.answer_id,
        )
        rows.writerow([_disarm(value) for value in values])
    return written.getvalue()


def _disarm(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _render_summary(report: FeedbackReport, entries: LogEntries) -> list[str]:
    if not entries.answers:
        return ["<p>There are no questions yet. <code>rag-pipeline serve</code> logs them.</p>"]
    first, last = (entries.answers[at].asked_at.date() for at in (0, -1))
    unanswered = show_part(report.unanswered_count, report.answer_count)
    rows = [
        f'<tr><th scope="row"><span class="key {level}"></span>{words}</th>'
        f'<td class="number">{report.by_level[level]}</td>'
        f'<td class="number">{report.by_level[level] / report.answer_count:.0%}</td></tr>'
        for level, words in _LEVELS.items()
        if level in report.by_level
    ]
    return [
        f'<p class="soft">{first} to {last}, {report.answer_count:,} questions</p>',
        f"<p>Not fully answered: <b>{unanswered}</b>.</p>",
        f"<p>Rated 4 or 5: <b>{show_share(report.helpful)}</b>. {escape(judge_goal(report))}</p>",
        "<h2>Questions by how they were answered</h2>",
        _draw_bar(report.by_level),
        f"<table><tbody>{''.join(rows)}</tbody></table>",
    ]


def _render_weeks(report: FeedbackReport) -> list[str]:
    rows = [
        f'<tr><th scope="row">{week.monday}</th><td class="number">{week.answer_count}</td>'
        f"<td>{_draw_bar(week.by_level)}</td>"
        f'<td class="number">{show_part(week.unanswered_count, week.answer_count)}</td>'
        f"<td>{show_share(week.helpful)}</td></tr>"
        for week in reversed(report.weeks)
    ]
    head = _head("week from", "questions", "how they were answered", "not answered", "rated 4 or 5")
    return ["<h2>Week by week</h2>", _table(head, rows)]


def _render_unanswered(report: UnansweredReport | None, problem: str) -> list[str]:
    lines = ["<h2>What the book did not answer</h2>"]
    if report is None:
        return [*lines, f"<p>The questions could not be grouped: {escape(problem)}</p>"]
    if not report.count:
        return [*lines, "<p>Every question was answered, and no answer was rated 1 or 2.</p>"]
    lines.append(
        "<p>Similar questions are grouped; the groups are suggestions. The nearest sections are "
        "what a search finds, with the similarity (0 to 1). If one of them should answer the "
        "question, improve its words. If none does, the book may need a new section.</p>"
    )
    counted = {
        "only counted, because LOG_QUESTIONS is off": report.unlogged_count,
        "only counted, because they are about a selection": report.selection_count,
        "only counted, because newer ones are grouped": report.omitted_count,
        "questions or groups not shown": report.cluster_count - len(report.clusters),
    }
    lines += [
        f'<p class="soft">{number:,} {words}.</p>' for words, number in counted.items() if number
    ]
    return [*lines, *(_render_group(cluster) for cluster in report.clusters)]


def _render_group(cluster: QuestionCluster) -> str:
    first, *others = cluster.questions[:_SHOWN_QUESTIONS]
    count = len(cluster.answer_ids)
    asked = "once" if count == 1 else f"{count} times"
    reasons = ", ".join(f"{name_reason(key)} ({times})" for key, times in cluster.by_reason.items())
    lines = [f"<h3>{escape(first)}</h3><p><small>asked {asked}: {escape(reasons)}</small></p>"]
    if others:
        lines.append("<p>Also:</p>" + _list(escape(question) for question in others))
    left = len(cluster.questions) - _SHOWN_QUESTIONS
    if left > 0:
        lines.append(f'<p class="soft">and {left} more</p>')
    if cluster.pages:
        near = (f"{_link(page.url, page.place)} ({page.similarity:.2f})" for page in cluster.pages)
        lines.append("<p>Nearest sections:</p>" + _list(near))
    return f'<div class="group">{"".join(lines)}</div>'


def _render_sections(report: FeedbackReport) -> list[str]:
    lines = ["<h2>Sections with the worst ratings</h2>"]
    if not report.worst_sections:
        return [*lines, "<p>No answer was rated 1 or 2.</p>"]
    rows = [
        f"<tr><td>{_link(one.url, one.url)}</td>"
        f'<td class="number">{one.bad_count}</td><td class="number">{one.count}</td>'
        f'<td class="number">{one.mean:.1f}</td></tr>'
        for one in report.worst_sections
    ]
    head = _head("section", "rated 1 or 2", "ratings", "mean")
    return [
        *lines,
        "<p>Answers that cite these sections were rated 1 or 2.</p>",
        _table(head, rows),
    ]


def _render_words(report: FeedbackReport) -> list[str]:
    if not (report.tags or report.notes):
        return []
    tags = [f"{escape(tag)}: {number}" for tag, number in report.tags.items()]
    notes = [
        f"{escape(note.text)} <small>(rated {note.rating}"
        + (f", asked: {escape(note.question)}" if note.question else "")
        + ")</small>"
        for note in report.notes
    ]
    return ["<h2>What readers said</h2>", _list([*tags, *notes])]


def _render_download(entries: LogEntries) -> list[str]:
    content = base64.b64encode(b"\xef\xbb\xbf" + list_questions(entries).encode()).decode()
    link = f'download="questions.csv" href="data:text/csv;base64,{content}"'
    return [
        "<h2>All questions</h2>",
        f'<p><a class="button" {link}>Download as CSV</a></p>',
        '<p class="soft">Questions and notes can be personal. Share this page with care.</p>',
    ]


def _draw_bar(by_level: Mapping[str, int]) -> str:
    """Return a bar with a part for each level, which a screen reader reads as a list of counts."""
    total = sum(by_level.values())
    shown = {level: words for level, words in _LEVELS.items() if by_level.get(level)}
    label = ", ".join(f"{words}: {by_level[level]}" for level, words in shown.items())
    parts = "".join(
        f'<span class="{level}" style="width:{100 * by_level[level] / total:.2f}%"></span>'
        for level in shown
    )
    return f'<div class="bar" role="img" aria-label="{label}" title="{label}">{parts}</div>'


def _head(*names: str) -> str:
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def _table(head: str, rows: Sequence[str]) -> str:
    parts = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table>{parts}</table></div>'


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _link(url: str, label: str) -> str:
    """Return a link to a section; only its label if the address is not a complete one."""
    if not url.startswith(("https://", "http://")):
        return escape(label)
    return f'<a href="{escape(url)}" rel="noreferrer">{escape(label)}</a>'
