"""A review of a book: what its index contains, which links are broken, and how well search works.

Two reviews are compared to show what a pull request changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rag_pipeline.evaluation.metrics import DOCUMENT, SECTION, SUCCESS
from rag_pipeline.evaluation.pages import Table, shorten, to_markdown
from rag_pipeline.evaluation.records import read_record
from rag_pipeline.evaluation.validation import SITE_ADDRESS, ValidationSuiteReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.evaluation.book import BookEvaluation
    from rag_pipeline.ingestion.report import IngestionReport

_SHOWN: Final = 20  # lines of a list; a comment on GitHub holds 65,536 characters
_SHOWN_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of the golden set, and what the first five results contained.

    Attributes:
        finds_page: True if they contained the page that answers the question.
        finds_section: True if they contained the section.
    """

    question: str
    finds_page: bool
    finds_section: bool


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """How well search answers the questions of a golden set.

    Attributes:
        golden_version: Hash of the golden set. Only figures with an equal hash can be compared.
        questions: The questions that the book answers, by id.
        failed_gates: Sentence of each quality gate that failed.
    """

    golden_version: str
    questions: dict[str, AskedQuestion]
    failed_gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BookReview:
    """The figures of a book's index for one state of its pages.

    Attributes:
        review_version: Version number of this format.
        pages: Number of pages in the docs folder.
        chunks: Number of chunks in the index.
        failed_pages: Message of each page that could not be indexed.
        notes: Notes of the ingestion, for example about a partial that is missing.
        problems: Message of each problem with the stored chunks and the test queries.
        addresses: Number of cited addresses that were looked up in the built site; None if no built
            site was given.
        broken_addresses: Message of each cited address that the built site does not have.
        search: The figures of the golden set; None without one.
    """

    review_version: Literal[1]
    pages: int
    chunks: int
    failed_pages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    addresses: int | None = None
    broken_addresses: tuple[str, ...] = ()
    search: SearchFigures | None = None

    @property
    def passed(self) -> bool:
        """True if every page was indexed, no check found a problem and no quality gate failed."""
        gates = self.search.failed_gates if self.search else ()
        return not (self.failed_pages or self.problems or self.broken_addresses or gates)


def build_review(
    ingested: IngestionReport,
    validated: ValidationSuiteReport,
    evaluation: BookEvaluation | None,
) -> BookReview:
    """Return the review that the results of an ingestion and of its checks amount to."""
    addresses, findings = validated.addresses, validated.found.findings
    search = None
    if evaluation is not None:
        search = SearchFigures(
            evaluation.report.fingerprint.golden_version,
            {
                one.query_id: AskedQuestion(
                    one.question,
                    one.scores[DOCUMENT][SUCCESS] > 0,
                    one.scores[SECTION][SUCCESS] > 0,
                )
                for one in evaluation.report.questions
                if one.answerable
            },
            tuple(gate.sentence for gate in evaluation.gates if not gate.passed),
        )
    return BookReview(
        review_version=1,
        pages=ingested.docs_discovered,
        chunks=validated.found.point_count,
        failed_pages=tuple(failure.message for failure in ingested.failures),
        notes=tuple(ingested.warnings),
        problems=tuple(str(one) for one in findings if one.kind != SITE_ADDRESS),
        addresses=addresses.address_count if addresses else None,
        broken_addresses=tuple(one.detail for one in findings if one.kind == SITE_ADDRESS),
        search=search,
    )


def load_review(path: Path) -> BookReview:
    """Read a review from its JSON file.

    Raises:
        EvaluationFileError: The file is missing, damaged or has another format version.
    """
    fix = "Write it with `rag-pipeline review --write`"
    return read_record(path, BookReview, fix)


def render_review(now: BookReview, before: BookReview | None = None) -> str:
    """Return a review as GitHub Markdown: a table, then lists of what is wrong.

    Args:
        now: The review of the present pages.
        before: A review of the pages before a change, for a second column; None for one column.
    """
    columns = {"Before": _describe(before, now)} if before else {}
    columns["Now"] = shown = _describe(now, now)
    rows = ((name, *(one[name] for one in columns.values())) for name in shown)
    table = Table(("", *columns), tuple(rows))
    state = "No problem was found." if now.passed else "There are problems."
    parts = ["### Search index of the book", to_markdown([table]), state]
    if now.search and before and before.search and not _match(now, before):
        parts.append("The golden set has changed, so its figures are not compared.")
    parts += _list("Pages that cannot be indexed", now.failed_pages)
    parts += _list("Broken cited addresses", now.broken_addresses)
    parts += _list("Failed checks of the index", now.problems)
    parts += _list("Failed quality gates", now.search.failed_gates if now.search else ())
    parts += _list("Questions whose page is no longer found", _find_lost(now, before))
    parts += _list("Notes", now.notes)
    return "\n\n".join(parts) + "\n"


def _describe(review: BookReview, now: BookReview) -> dict[str, str]:
    """Return the column of a review. It has the golden set's figures if the present pages do."""
    column = {
        "Pages": f"{review.pages:,}",
        "Pages that cannot be indexed": f"{len(review.failed_pages):,}",
        "Chunks": f"{review.chunks:,}",
        "Broken cited addresses": "not checked",
    }
    if review.addresses is not None:
        broken = f"{len(review.broken_addresses):,} of {review.addresses:,}"
        column["Broken cited addresses"] = broken
    if now.search is not None and now.search.questions:
        search = _match(now, review)
        asked = search.questions.values() if search else ()
        pages = _show_share([one.finds_page for one in asked])
        sections = _show_share([one.finds_section for one in asked])
        column["Questions whose page is in the first 5 results"] = pages
        column["Questions whose section is in the first 5 results"] = sections
    return column


def _show_share(found: Sequence[bool]) -> str:
    if not found:
        return "not known"
    return f"{sum(found):,} of {len(found):,} ({sum(found) / len(found):.0%})"


def _match(now: BookReview, other: BookReview | None) -> SearchFigures | None:
    """Return the figures of another review if they are about the same questions."""
    if now.search is None or other is None or other.search is None:
        return None
    return other.search if other.search.golden_version == now.search.golden_version else None


def _find_lost(now: BookReview, before: BookReview | None) -> list[str]:
    """Return the questions whose page was found before and is not found now."""
    earlier = _match(now, before)
    if now.search is None or earlier is None:
        return []
    return [
        asked.question
        for query_id, asked in now.search.questions.items()
        if not asked.finds_page and earlier.questions[query_id].finds_page
    ]


def _list(title: str, lines: Sequence[str]) -> list[str]:
    """Return a heading with the first lines, as text that GitHub does not interpret; or nothing.

    Lines contain text of pages, which could otherwise contain links, images or names of users.
    """
    if not lines:
        return []
    shown = [shorten(line, _SHOWN_CHARS).replace("`", "'") for line in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        shown.append(f"and {len(lines) - _SHOWN:,} more")
    return ["\n".join([f"**{title}** ({len(lines):,})", "", "```text", *shown, "```"])]
