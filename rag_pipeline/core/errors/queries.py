"""Errors of queries and their results."""

from __future__ import annotations

from rag_pipeline.core.errors.base import RagPipelineError


class QueryError(RagPipelineError, ValueError):
    """A query is not usable; a ValueError as well, for callers that know no class of ours.

    Attributes:
        position: Which query of a batch, from 1; None for a query by itself.
    """

    code = "QUERY_INVALID"
    http_status = 400
    exit_code = 2
    position: int | None = None

    def __str__(self) -> str:
        """The message, with the query's position before it where there is one."""
        message = super().__str__()
        return message if self.position is None else f"query {self.position}: {message}"


class QueryEmptyError(QueryError):
    """The question is empty or white space alone."""

    code = "QUERY_EMPTY"

    def __init__(self) -> None:
        super().__init__("the question is empty. Ask something in words")


class QueryTooLongError(QueryError):
    """The question has too many characters."""

    code = "QUERY_TOO_LONG"

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        super().__init__(
            f"the question has {length:,} characters, the limit is {limit:,}. Shorten it"
        )


class InvalidKError(QueryError):
    """The number of results asked for is out of its bounds."""

    code = "INVALID_K"

    def __init__(self, k: object, lowest: int, highest: int) -> None:
        self.k = k
        super().__init__(f"top_k must be a whole number from {lowest} to {highest}, not {k!r:.40}")


class SelectionMissingError(QueryError):
    """Selected-text mode was asked for without a selection."""

    code = "SELECTED_TEXT_MISSING"

    def __init__(self) -> None:
        super().__init__(
            "selected-text mode needs selected_text, and it is empty. Pass the selection, or ask "
            "in normal mode"
        )


class ResultInvalidError(RagPipelineError):
    """What a store or a reranker answered is not what was asked for."""

    code = "INVALID_RESULT"


class ValidationFailedError(RagPipelineError):
    """Results were found but broke a rule that every result must keep."""

    code = "VALIDATION_FAILED"
    http_status = 422

    def __init__(self, failed_checks: tuple[str, ...]) -> None:
        self.failed_checks = failed_checks
        super().__init__(
            f"results break {len(failed_checks)} rules: {', '.join(failed_checks)}. Run "
            "`rag-pipeline audit`"
        )
