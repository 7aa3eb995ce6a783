"""Errors of queries and of their results."""

from __future__ import annotations

from rag_pipeline.core.errors.base import RagPipelineError


class QueryError(RagPipelineError, ValueError):
    """A query or a batch of queries is invalid, for example because a filter has an unknown value.

    Subclasses cover frequent problems, such as an empty question. The class is also a ValueError,
    so that callers can catch it without importing this package.

    Attributes:
        position: Position of the query in its batch, from 1; None if the query is not in a batch.
    """

    code = "QUERY_INVALID"
    path_name = None
    http_status = 400
    exit_code = 2
    position: int | None = None

    def __str__(self) -> str:
        """Return the message, with `query N: ` before it if the query is number N of a batch."""
        message = super().__str__()
        return message if self.position is None else f"query {self.position}: {message}"


class QueryEmptyError(QueryError):
    """The question is empty or contains only white space."""

    code = "QUERY_EMPTY"

    def __init__(self) -> None:
        super().__init__("the question is empty. Write the question in words")


class QueryTooLongError(QueryError):
    """The question has more characters than the limit.

    Attributes:
        length: Number of characters of the question.
    """

    code = "QUERY_TOO_LONG"

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(
            f"the question has {length:,} characters, but the limit is {limit:,}. Shorten the "
            "question"
        )


class InvalidKError(QueryError):
    """The requested number of results (`top_k`) is not a whole number within its limits.

    Attributes:
        k: The value that was given.
    """

    code = "INVALID_K"

    def __init__(self, k: object, lowest: int, highest: int) -> None:
        self.k = k
        super().__init__(f"top_k must be a whole number from {lowest} to {highest}, not {k!r:.40}")


class SelectionMissingError(QueryError):
    """A query in selected-text mode contains no selected text.

    In this mode the answer is taken only from the text that the reader selected on the page.
    """

    code = "SELECTED_TEXT_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "selected-text mode needs a selected text, but selected_text is empty. Pass the text "
            "that the reader selected, or use normal mode"
        )


class SectionMissingError(QueryError):
    """The book has no page or section at an address.

    Attributes:
        url: The address that was asked for.
    """

    code = "SECTION_MISSING"
    http_status = 404

    def __init__(self, url: str, page_url: str | None = None) -> None:
        self.url = url
        advice = "Use an address from the table of contents or from the source of an answer"
        if page_url is not None:
            advice = f"The page {page_url} exists, but it has no such section. {advice}"
        super().__init__(f"the book has nothing at the address {url[:80]!r}. {advice}")


class ResultInvalidError(RagPipelineError):
    """A search failed because its results are invalid.

    Either a found passage breaks a rule that all results must follow, or the reranker (the model
    that reorders results) did not return one finite score for each passage.
    """

    code = "INVALID_RESULT"


class ValidationFailedError(RagPipelineError):
    """A query that was run in order to check its results failed at least one of the checks.

    For example, nothing was found, a result is invalid, or a second search found something else.

    Attributes:
        failed_checks: Names of the failed checks.
    """

    code = "VALIDATION_FAILED"
    http_status = 422

    def __init__(self, failed_checks: tuple[str, ...]) -> None:
        self.failed_checks = failed_checks
        super().__init__(
            f"the results break {len(failed_checks)} rule(s): {', '.join(failed_checks)}. Run "
            "`rag-pipeline audit` to check the index"
        )
