"""The plots of an evaluation report, as inline SVG for the HTML page and as PNG for Dagster."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.matching import DOCUMENT, SECTION
from rag_pipeline.evaluation.metrics import NDCG, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rag_pipeline.evaluation.records import EvaluationReport, Interval

_INK: Final = "#010203"  # replaced with currentColor in SVG, so that text fits a light or dark page
_BLUE, _AMBER, _GREEN = "#3f83d8", "#d98a1f", "#2f9e6e"  # readable on white and on near-black
_SIZE_INCHES: Final = (6.4, 3.2)
_RANK_LABELS: Final = ("1", "2", "3", "4", "5", "6-10", "none")
_SERIES: Final = (
    (DOCUMENT, SUCCESS, _BLUE),
    (SECTION, SUCCESS, _AMBER),
    (SECTION, NDCG, _GREEN),
)
_HISTORY_RUNS: Final = 30


def draw_history(history: Sequence[EvaluationReport]) -> Figure:
    """Draw Success@5 and nDCG@10 of the last 30 evaluations, oldest first, with 95% intervals."""
    figure, axes = _new_figure(
        "Measures by evaluation", "evaluation, oldest first", "mean and 95% interval"
    )
    runs = history[-_HISTORY_RUNS:]
    for beside, (level, measure, colour) in zip((-0.08, 0.0, 0.08), _SERIES, strict=True):
        points = [
            (at + beside, run.overall.get(level, {}).get(measure)) for at, run in enumerate(runs, 1)
        ]
        found: list[tuple[float, Interval]] = [(at, one) for at, one in points if one is not None]
        axes.errorbar(
            [at for at, _ in found],
            [one.mean for _, one in found],
            yerr=[
                [one.mean - one.low for _, one in found],
                [one.high - one.mean for _, one in found],
            ],
            color=colour,
            marker="o",
            capsize=3,
            label=f"{measure}, {level}",
        )
    axes.set_ylim(0, 1.02)
    axes.set_xticks(range(1, len(runs) + 1))
    axes.set_xlim(0.5, len(runs) + 0.5)
    _add_legend(axes)
    return figure


def draw_scores(report: EvaluationReport) -> Figure:
    """Draw histograms of the best passage's score.

    One histogram shows the questions that the book answers, the other the remaining questions.
    """
    figure, axes = _new_figure("Score of the best passage", "score", "questions")
    answerable = [
        one.retrieved[0].score for one in report.questions if one.answerable and one.retrieved
    ]
    others = [
        one.retrieved[0].score for one in report.questions if not one.answerable and one.retrieved
    ]
    bins = [step / 25 for step in range(26)]
    axes.hist(answerable, bins=bins, color=_BLUE, alpha=0.75, label="answered by the book")
    axes.hist(others, bins=bins, color=_AMBER, alpha=0.75, label="not answered by the book")
    _add_legend(axes)
    return figure


def draw_ranks(report: EvaluationReport) -> Figure:
    """Draw how many answerable questions have their first hit at each rank.

    One series shows the first chunk of an expected document, the other the first chunk of an
    expected section. Questions without a hit among ten chunks are counted as "none".
    """
    figure, axes = _new_figure("Rank of the first hit", "rank", "questions")
    for level, colour, shift in ((DOCUMENT, _BLUE, -0.2), (SECTION, _AMBER, 0.2)):
        counts = dict.fromkeys(_RANK_LABELS, 0)
        for question in report.questions:
            if question.answerable:
                ranks = (
                    place.document_rank if level == DOCUMENT else place.section_rank
                    for place in question.expected
                )
                counts[_name_rank(min((rank for rank in ranks if rank), default=None))] += 1
        places = [at + shift for at in range(len(_RANK_LABELS))]
        axes.bar(places, list(counts.values()), width=0.4, color=colour, label=level)
    axes.set_xticks(range(len(_RANK_LABELS)), _RANK_LABELS)
    _add_legend(axes)
    return figure


def to_png(figure: Figure) -> bytes:
    """Return a figure as a PNG image with white background."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, facecolor="white")
    return buffer.getvalue()


def to_inline_svg(figure: Figure, name: str) -> str:
    """Return a figure as an `<svg>` element to embed in an HTML page.

    Element ids begin with `name`, so that several figures fit on one page. Text has the page's
    text color. XML namespaces and metadata are removed, so that the element contains no URL.
    """
    import matplotlib as mpl  # noqa: PLC0415  # slow to import; most commands draw nothing

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href").replace(_INK, "currentColor")
    svg = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    return re.sub(r'width="[^"]*pt" height="[^"]*pt"|height="[^"]*pt"', "", svg, count=2)


def _new_figure(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import, and an extra

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, color=_INK, fontsize=13)
    axes.set_xlabel(x_label, color=_INK, fontsize=11)
    axes.set_ylabel(y_label, color=_INK, fontsize=11)
    axes.tick_params(colors=_INK, labelsize=10)
    axes.grid(visible=True, axis="y", color=_INK, alpha=0.15)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(_INK)
    return figure, axes


def _add_legend(axes: Axes) -> None:
    axes.legend(frameon=False, labelcolor=_INK, fontsize=10)


def _name_rank(rank: int | None) -> str:
    if rank is None or rank > 10:
        return "none"
    return str(rank) if rank <= 5 else "6-10"
