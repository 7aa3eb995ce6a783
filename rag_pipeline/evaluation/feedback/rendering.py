"""The reports on feedback and unanswered questions as Markdown.

Questions are text that anybody can write, so they are escaped: they can be neither HTML nor links.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.feedback.ratings import GOAL
from rag_pipeline.evaluation.significance import show_interval

if TYPE_CHECKING:
    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.evaluation.feedback.ratings import FeedbackReport
    from rag_pipeline.evaluation.feedback.unanswered import QuestionCluster, UnansweredReport

_SHOWN_QUESTIONS: Final = 5
_SHOWN_CHARS: Final = 200


def render_feedback(report: FeedbackReport) -> str:
    """Return the report on ratings as Markdown."""
    lines = [
        f"{report.answer_count} answers, of which {report.unanswered_count} did not fully answer "
        "the question.",
        "",
        f"**SC-005**: the share of ratings that are 4 or 5 is {show_interval(report.helpful)}. "
        f"{_judge(report)}",
        "",
        "| week from | answers | not answered | rated 4 or 5 |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {week.monday} | {week.answer_count} | {week.unanswered_count} | "
        f"{show_interval(week.helpful)} |"
        for week in report.weeks
    ]
    if report.worst_sections:
        lines += [
            "",
            "Sections cited by answers that were rated 1 or 2:",
            "",
            "| section | rated 1 or 2 | ratings | mean rating |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {_escape(one.url)} | {one.bad_count} | {one.count} | {one.mean:.1f} |"
            for one in report.worst_sections
        ]
    return "\n".join(lines)


def render_unanswered(report: UnansweredReport) -> str:
    """Return the report on unanswered questions as Markdown."""
    lines = [f"{report.count} questions were not answered, or their answers were rated 1 or 2."]
    if report.by_reason:
        lines += ["", "| reason | answers |", "|---|---|"]
        lines += [f"| {_escape(name)} | {count} |" for name, count in report.by_reason.items()]
    if report.unlogged_count:
        lines += [
            "",
            f"The text of {report.unlogged_count} of these questions was not logged, so they are "
            "only counted. LOG_QUESTIONS=true logs the text of questions.",
        ]
    if report.clusters:
        lines += ["", "Suggestions: these questions may be about the same subject."]
    for number, cluster in enumerate(report.clusters, 1):
        lines += ["", *_render_cluster(number, cluster)]
    return "\n".join(lines)


def _render_cluster(number: int, cluster: QuestionCluster) -> list[str]:
    shown = cluster.questions[:_SHOWN_QUESTIONS]
    lines = [f"**{number}. {_escape(shown[0])}** (asked {len(cluster.answer_ids)} times)", ""]
    lines += [f"- {_escape(question)}" for question in shown[1:]]
    if len(cluster.questions) > len(shown):
        lines.append(f"- and {len(cluster.questions) - len(shown)} more")
    pages = "; ".join(
        f"{_escape(page.place)} ({_escape(page.url)})" if page.url else _escape(page.place)
        for page in cluster.pages
    )
    lines += [f"- nearest pages: {pages or 'none'}", f"- an answer id: `{cluster.answer_ids[0]}`"]
    return lines


def list_feedback_numbers(report: FeedbackReport) -> dict[str, JsonValue]:
    """Return the numbers of the report by name. The share is left out without ratings."""
    numbers: dict[str, JsonValue] = {
        "answer_count": report.answer_count,
        "unanswered_count": report.unanswered_count,
        "rating_count": report.helpful.count if report.helpful else 0,
    }
    if report.helpful:
        interval = report.helpful
        numbers |= {
            "helpful_share": interval.mean,
            "helpful_low": interval.low,
            "helpful_high": interval.high,
        }
    return numbers


def _judge(report: FeedbackReport) -> str:
    if report.helpful is None:
        return "There are no ratings yet."
    if report.helpful.low >= GOAL:
        return f"The goal of {GOAL:.0%} is reached."
    if report.helpful.high < GOAL:
        return f"The goal of {GOAL:.0%} is missed."
    return f"The ratings are too few to tell if the goal of {GOAL:.0%} is reached."


def _escape(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return re.sub(r"([\\`*_\[\]|~#!$])", r"\\\1", html.escape(line, quote=False))
