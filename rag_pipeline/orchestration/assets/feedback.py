"""The assets `answer_feedback` and `unanswered_questions`, reports on the question log."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg

from rag_pipeline.orchestration.assets.ingestion import BOOK_INDEX
from rag_pipeline.orchestration.dead_runs import begin_run
from rag_pipeline.orchestration.resources import QuestionLogResource

if TYPE_CHECKING:  # an ingestion loads this module too, and must not load the question log
    from rag_pipeline.evaluation.feedback import LogEntries

GROUP = "feedback"

_DAILY = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(hours=50), warn_window=timedelta(hours=26)
)
"""The reports are made each day. If they are not, Dagster's daemon does not run."""

_NO_LOG = "There is no question log, because QUESTION_LOG_DAYS is 0. Nothing was reported."
_EMPTY = "The question log is empty. `rag-pipeline serve` fills it."


@dg.asset(
    group_name=GROUP,
    kinds={"python"},
    freshness_policy=_DAILY,
    description=(
        "What readers think of the answers: the share of ratings that are 4 or 5 (SC-005) with its "
        "interval, the trend per week, and the sections whose answers were rated worst."
    ),
)
def answer_feedback(
    context: dg.AssetExecutionContext,
    question_log: QuestionLogResource,
) -> dg.MaterializeResult[None]:
    """Report the ratings of the answers in the question log."""
    begin_run(context.instance, context.run.run_id, None)
    entries = question_log.read()
    if entries is None or not entries.answers:
        return _explain(context, entries)
    from rag_pipeline.evaluation.feedback import (  # noqa: PLC0415  # see the top of the module
        describe_feedback,
        list_feedback_numbers,
        report_feedback,
    )
    from rag_pipeline.evaluation.pages import to_markdown  # noqa: PLC0415  # as above

    report = report_feedback(entries.answers, entries.ratings)
    metadata: dict[str, Any] = {
        "report": dg.MetadataValue.md(to_markdown(describe_feedback(report)))
    }
    return dg.MaterializeResult(metadata=metadata | list_feedback_numbers(report))


@dg.asset(
    deps=[BOOK_INDEX],
    group_name=GROUP,
    kinds={"python"},
    freshness_policy=_DAILY,
    description=(
        "The questions that the book did not answer, or whose answers were rated 1 or 2. Similar "
        "questions are grouped, and each group names the pages nearest to it. The groups are "
        "suggestions for what the book could explain. The page is for authors, as `rag-pipeline "
        "report-feedback` writes it."
    ),
)
def unanswered_questions(
    context: dg.AssetExecutionContext,
    question_log: QuestionLogResource,
) -> dg.MaterializeResult[None]:
    """Report the unanswered questions in the question log, and write the page for authors."""
    begin_run(context.instance, context.run.run_id, None)
    entries = question_log.read()
    if entries is None or not entries.answers:
        return _explain(context, entries)
    from rag_pipeline.evaluation.feedback import describe_unanswered  # noqa: PLC0415  # see the top
    from rag_pipeline.evaluation.pages import to_markdown  # noqa: PLC0415  # as above

    report = question_log.group_unanswered(entries)
    return dg.MaterializeResult(
        metadata={
            "report": dg.MetadataValue.md(to_markdown(describe_unanswered(report))),
            "page": dg.MetadataValue.path(question_log.write_page(entries, report)),
            "unanswered_count": report.count,
            "unlogged_count": report.unlogged_count,
            "cluster_count": report.cluster_count,
        }
    )


def _explain(
    context: dg.AssetExecutionContext, entries: "LogEntries | None"
) -> dg.MaterializeResult[None]:
    """Return a result that says why there is nothing to report."""
    message = _NO_LOG if entries is None else _EMPTY
    context.log.info(message)
    return dg.MaterializeResult(metadata={"report": dg.MetadataValue.md(message)})
