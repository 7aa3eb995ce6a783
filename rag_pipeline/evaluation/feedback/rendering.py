"""The reports on feedback and unanswered questions as Markdown.

Questions and notes are text that anybody can write, so they are escaped: they can be neither HTML
nor links. Addresses are shown as code, because the reports are read outside the website.
"""

from __future__ import annotations

import html
import itertools
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.feedback.ratings import GOAL
from rag_pipeline.evaluation.feedback.unanswered import RATED_BADLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.evaluation.feedback.ratings import FeedbackReport, SectionRatings
    from rag_pipeline.evaluation.feedback.unanswered import (
        NearPage,
        QuestionCluster,
        UnansweredReport,
    )
    from rag_pipeline.evaluation.records import Interval

_SHOWN_QUESTIONS: Final = 5
_SHOWN_CHARS: Final = 200

_REASONS: Final = {
    "not_covered": "the book does not cover it",
    "uncertain": "only the closest passages were shown",
    "no_passages": "no passage matched the filters",
    "model_declined": "the model found no answer in the passages",
    "unrelated_to_selection": "the selection does not answer it",
    RATED_BADLY: "answered, but rated 1 or 2",
}


_ADVICE: Final = (
    "The nearest sections are what a search finds, with the similarity to the question (0 to 1). "
    "If one of them should answer the question, improve its words. If none does, the book may need "
    "a new section, or the question is outside the course. To measure a question from now on, run "
    "`rag-pipeline golden-entry --from-log ID`."
)


def render_feedback(report: FeedbackReport) -> str:
    """Return the report on ratings as Markdown."""
    unanswered = _show_part(report.unanswered_count, report.answer_count)
    lines = [
        f"**SC-005**, the share of ratings that are 4 or 5: {_show_share(report.helpful)}. "
        + _judge(report),
        "",
        f"Answers in the log: {report.answer_count}. Not fully answered: {unanswered}.",
    ]
    if report.weeks:
        lines += ["", "A share of ratings is followed by its 95% interval."]
        header = "| week from | answers | not fully answered | rated 4 or 5 |"
        lines += ["", header, "|---|---|---|---|"]
    lines += [
        f"| {week.monday} | {week.answer_count} | "
        f"{_show_part(week.unanswered_count, week.answer_count)} | {_show_share(week.helpful)} |"
        for week in report.weeks
    ]
    if report.worst_sections:
        lines += ["", "### Sections to check", "", *_render_sections(report.worst_sections)]
    if report.tags or report.notes:
        lines += ["", "### What readers said", ""]
    lines += [
        f"- {_escape(tag)}: {_count(number, 'rating')}" for tag, number in report.tags.items()
    ]
    for note in report.notes:
        about = f', asked "{_escape(note.question)}"' if note.question else ""
        lines.append(f"- {_escape(note.text)} (rated {note.rating}{about})")
    return "\n".join(lines)


def render_unanswered(report: UnansweredReport) -> str:
    """Return the report on unanswered questions as Markdown."""
    part = _show_part(report.count, report.answer_count)
    lines = [f"Questions that were not answered, or whose answers were rated 1 or 2: {part}."]
    if report.by_reason:
        lines += ["", "| reason | answers |", "|---|---|"]
        lines += [f"| {_name(key)} | {count} |" for key, count in report.by_reason.items()]
    if report.unlogged_count:
        lines += ["", f"Only counted, because the text was not logged: {report.unlogged_count}."]
        lines.append("LOG_QUESTIONS=true logs the text of later questions.")
    if report.selection_count:
        lines += [
            "",
            f"Only counted, because a selection was asked about: {report.selection_count}.",
        ]
    if report.omitted_count:
        lines += ["", f"Only counted, because newer ones are grouped: {report.omitted_count}."]
    groups = [one for one in report.clusters if len(one.answer_ids) > 1]
    single = [one for one in report.clusters if len(one.answer_ids) == 1]
    if report.clusters:
        lines += ["", _ADVICE]
    if groups:
        lines += ["", "### Asked more than once", ""]
        lines.append("The groups are suggestions: similar words can mean different things.")
    for number, cluster in enumerate(groups, 1):
        lines += ["", *_render_group(number, cluster)]
    if single:
        lines += ["", "### Asked once", ""]
        lines += ["| question | reason | nearest section | id |", "|---|---|---|---|"]
    reasons = list(report.by_reason)
    single.sort(key=lambda one: reasons.index(next(iter(one.by_reason))))
    lines += [_render_single(one) for one in single]
    hidden = report.cluster_count - len(report.clusters)
    if hidden > 0:
        lines += ["", f"Not shown: {hidden} more questions or groups."]
    return "\n".join(lines)


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


def _render_sections(sections: Sequence[SectionRatings]) -> list[str]:
    """Return the table of sections. The folder that all addresses share is shown only once."""
    folder = _find_folder([one.url for one in sections])
    place = f" below {_show_code(folder)}" if folder else ""
    return [
        f"These sections{place} are cited by answers that were rated 1 or 2.",
        "",
        "| section | rated 1 or 2 | ratings | mean rating |",
        "|---|---|---|---|",
        *(
            f"| {_show_code(one.url.removeprefix(folder))} | "
            f"{one.bad_count} | {one.count} | {one.mean:.1f} |"
            for one in sections
        ),
    ]


def _find_folder(urls: Sequence[str]) -> str:
    """Return the longest common beginning of the addresses that ends with a slash; may be empty.

    It never includes the name of a page, even if addresses end with a slash.
    """
    folders = [url.partition("#")[0].rstrip("/").split("/")[:-1] for url in urls]
    shared = itertools.takewhile(
        lambda names: len(set(names)) == 1, itertools.zip_longest(*folders)
    )
    return "".join(f"{names[0]}/" for names in shared)


def _render_group(number: int, cluster: QuestionCluster) -> list[str]:
    shown = cluster.questions[:_SHOWN_QUESTIONS]
    count = len(cluster.answer_ids)
    reasons = ", ".join(f"{_name(key)} ({times})" for key, times in cluster.by_reason.items())
    lines = [f"**{number}. {_escape(shown[0])}** (asked {count} times)", ""]
    lines += [f"- also: {_escape(question)}" for question in shown[1:]]
    if len(cluster.questions) > len(shown):
        lines.append(f"- and {_count(len(cluster.questions) - len(shown), 'more wording')}")
    lines.append(f"- reason: {reasons}")
    lines += [f"- near: {_show_page(page)}" for page in cluster.pages]
    lines.append(f"- id: {_show_code(cluster.answer_ids[-1])}")
    return lines


def _render_single(cluster: QuestionCluster) -> str:
    page = _show_page(cluster.pages[0]) if cluster.pages else "none"
    reason = _name(next(iter(cluster.by_reason)))
    question = _escape(cluster.questions[0])
    return f"| {question} | {reason} | {page} | {_show_code(cluster.answer_ids[0])} |"


def _show_page(page: NearPage) -> str:
    return f"{_escape(page.place)} ({page.similarity:.2f})"


def _name(reason: str) -> str:
    return _REASONS.get(reason) or _escape(reason)


def _judge(report: FeedbackReport) -> str:
    if report.helpful is None:
        return "There are no ratings yet."
    if report.helpful.low >= GOAL:
        return f"The goal of {GOAL:.0%} is reached."
    if report.helpful.high < GOAL:
        return f"The goal of {GOAL:.0%} is missed."
    return f"The ratings are too few to tell if the goal of {GOAL:.0%} is reached."


def _show_share(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    ratings = _count(interval.count, "rating")
    return f"{interval.mean:.0%} ({interval.low:.0%} to {interval.high:.0%}, {ratings})"


def _show_part(count: int, total: int) -> str:
    return f"{count} of {total} ({count / total:.0%})" if total else str(count)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show_code(text: str) -> str:
    """Return an address or id as Markdown code, which has no escapes."""
    line = "".join(text.split())[:_SHOWN_CHARS]
    return f"`{line.replace('`', '%60').replace('|', '%7C')}`"


def _escape(text: str) -> str:
    line = " ".join(text.split())
    line = re.sub(r"(?i)(https?(?=:)|www(?=\.)|@)", "\\1\u2060", line)  # or it would become a link
    line = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return re.sub(r"([\\`*_\[\]|~#!$])", r"\\\1", html.escape(line, quote=False))
