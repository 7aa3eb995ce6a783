"""The queries of the retrieval library, and their validation.

The field names are part of the library's public contract.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    InvalidKError,
    QueryEmptyError,
    QueryError,
    QueryTooLongError,
    SelectionMissingError,
)
from rag_pipeline.core.payload import FILTERS, LATE_INDEXES
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.site.docusaurus import link_within_site

if TYPE_CHECKING:
    from rag_pipeline.core.models import SiteSettings


DEFAULT_TOP_K: Final = 5
MAX_FILTER_VALUES: Final = 50
ANY_VALUE: Final = "*"
"""Value of the filters by version and language that allows all. No version has this name."""


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """Restrictions on the chunks that a query can find, and the number of results.

    A chunk must have one of the given values in every filtered field. A field that is None or
    empty does not restrict the search. A field can have at most 50 values.

    Attributes:
        modules: Names of modules, such as `module-1`.
        chapters: Names of chapters, such as `1.1-introduction-to-physical-ai`.
        content_types: Any of prose, code, table, lab, quiz, assessment and api.
        tags: Tags from the front matter of documents.
        top_k: Number of results, 1 to 100. `Query.top_k` takes precedence.
        doc_paths: Paths of documents below the docs folder, such as `module-1/intro.md`.
        sources: Parts of the site, such as `docs`, `api` or `blog`.
        versions: Names of versions, such as `current` or `2.0`; `*` for all versions.
        locales: Names of languages, such as `fr`; `*` for all languages.
    """

    modules: Sequence[str] | None = None
    chapters: Sequence[str] | None = None
    content_types: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    top_k: int = DEFAULT_TOP_K
    doc_paths: Sequence[str] | None = None
    sources: Sequence[str] | None = None
    versions: Sequence[str] | None = None
    locales: Sequence[str] | None = None


def check_filters(filters: object) -> None:
    """Check that each filter is a list of at most 50 strings, and that content types are known.

    Raises:
        QueryError: A filter is invalid; the message names the filter.
    """
    if not isinstance(filters, QueryFilters):
        raise QueryError(f"filters must be a QueryFilters object, not {filters!r:.40}")
    for field, declared in FILTERS.items():
        values = getattr(filters, declared.name)
        if values is None:
            continue
        is_list = isinstance(values, Collection) and not isinstance(values, str)
        if not is_list or not all(isinstance(value, str) for value in values):
            raise QueryError(
                f"filter {declared.name} must be a list of strings, not {values!r:.40}"
            )
        if len(values) > MAX_FILTER_VALUES:
            raise QueryError(
                f"filter {declared.name} has {len(values):,} values, but the limit is "
                f"{MAX_FILTER_VALUES}. Use fewer values, or leave the filter out"
            )
        unknown = [value for value in values if declared.values and value not in declared.values]
        if unknown:
            label, allowed = field.replace("_", " "), ", ".join(declared.values)
            raise QueryError(f"{label} {unknown[0]!r:.40} is unknown. Use one of {allowed}")


def build_point_filter(filters: QueryFilters | None) -> PointFilter:
    """Translate checked query filters into the store's filter.

    If `filters` is None, the result matches all chunks. A value that no chunk has matches nothing.
    """
    if filters is None:
        return PointFilter()
    return PointFilter.any_of(
        **{
            field: _clean(getattr(filters, declared.name), any_allowed=field in LATE_INDEXES)
            for field, declared in FILTERS.items()
        }
    )


def _clean(values: Sequence[str] | None, *, any_allowed: bool) -> list[str]:
    """Return the distinct values of a filter in sorted order; an empty list for no restriction.

    Unpaired surrogates, which can come from JSON, are replaced by `?`. No chunk contains them.
    """
    if any_allowed and values and ANY_VALUE in values:
        return []
    return sorted({value.encode("utf-8", "replace").decode() for value in values or ()})


MAX_QUESTION_CHARS: Final = 5_000
MAX_SELECTION_CHARS: Final = 20_000
MAX_TOP_K: Final = 100
_REPLACED: Final = {
    # Letters and digits as Chinese and Japanese keyboards write them; no book has them.
    **{code + 0xFEE0: code for code in range(0x80) if chr(code).isalnum()},
    **{code: " " for code in range(0xA0) if not (chr(code).isprintable() or chr(code) in "\t\n\r")},
    # Invisible characters of copied texts. Joiners stay, because Persian words need them.
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200e\u200f\u2060\ufeff")),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
}
_SELECTION_FIELDS: Final = ("selected_text", "source_doc_path", "source_section")


class Mode(StrEnum):
    """The source of the passages: the whole book, or only the text that the reader selected."""

    NORMAL = "normal"
    SELECTED_TEXT_ONLY = "selected_text_only"


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its mode, filters and number of results.

    Attributes:
        question: 1 to 5,000 characters after stripping white space; at least one is visible.
        mode: Search the whole book, or use only `selected_text`.
        selected_text: Text that the reader selected, at most 20,000 characters. It is used and
            required only in selected-text mode.
        source_doc_path: Path of the document with the selection, for the citation.
        source_section: Heading above the selection, for the citation.
        filters: Restrictions on the search. They have no effect in selected-text mode.
        top_k: Number of results, 1 to 100. None uses `filters.top_k`, or 5 without filters.
        expand_to_section_tokens: Join each hit with neighbouring chunks of its section, up to this
            many cl100k_base tokens. None does not expand hits.
        source_url: URL of the page with the selection, for the citation. It must be an address of
            the site. None derives the URL from `source_doc_path`, which is wrong for a page whose
            front matter sets a `slug`. In normal mode it is the page on which the question is
            asked. Its version and language are searched if `filters` name none.
        exact_words: Search the question as it is written, also if a word seems misspelled.
        min_relative_score: Leave out results whose score is below this share of the best score, 0
            to 1. 0 keeps all results.
    """

    question: str
    mode: Mode = Mode.NORMAL
    selected_text: str | None = None
    source_doc_path: str | None = None
    source_section: str | None = None
    filters: QueryFilters | None = None
    top_k: int | None = None
    expand_to_section_tokens: int | None = None
    source_url: str | None = None
    exact_words: bool = False
    min_relative_score: float = 0.0

    def __post_init__(self) -> None:
        """Replace unpaired surrogates, which JSON can contain but UTF-8 cannot, by `?`.

        Full-width letters and digits of the question become plain ones, and control characters
        become blanks. Its invisible characters are removed.
        """
        for name in ("question", *_SELECTION_FIELDS, "source_url"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, value.encode("utf-8", "replace").decode())
        if isinstance(self.question, str):
            object.__setattr__(self, "question", self.question.translate(_REPLACED))

    @property
    def result_count(self) -> int:
        """The number of results: `top_k`, otherwise `filters.top_k`, otherwise 5."""
        if self.top_k is not None:
            return self.top_k
        return self.filters.top_k if self.filters else DEFAULT_TOP_K

    def check(self) -> None:
        """Check that the fields of the query are valid.

        Raises:
            QueryEmptyError: The question has no visible character.
            QueryTooLongError: The question has more than 5,000 characters.
            InvalidKError: The number of results is not a whole number from 1 to 100.
            SelectionMissingError: The mode is selected-text, but `selected_text` is empty.
            QueryError: Another field is invalid; the message names the field.
        """
        if not isinstance(self.question, str):
            raise QueryError(f"the question must be a string, not {self.question!r:.40}")
        if _is_blank(self.question):
            raise QueryEmptyError
        length = len(self.question.strip())
        if length > MAX_QUESTION_CHARS:
            raise QueryTooLongError(length, MAX_QUESTION_CHARS)
        if self.mode not in tuple(Mode):
            raise QueryError(f"mode must be one of {', '.join(Mode)}, not {self.mode!r:.40}")
        for name in _SELECTION_FIELDS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise QueryError(f"{name} must be a string, not {value!r:.40}")
        selected = len(self.selected_text or "")
        if selected > MAX_SELECTION_CHARS:
            raise QueryError(
                f"selected_text has {selected:,} characters, but the limit is "
                f"{MAX_SELECTION_CHARS:,}. Select less text, or ask the whole book"
            )
        if self.mode == Mode.SELECTED_TEXT_ONLY and _is_blank(self.selected_text or ""):
            raise SelectionMissingError
        if type(self.exact_words) is not bool:
            raise QueryError(f"exact_words must be true or false, not {self.exact_words!r:.40}")
        self._check_search()

    def _check_search(self) -> None:
        if self.filters is not None:
            check_filters(self.filters)
        count = self.result_count
        if not _is_count(count, 1, MAX_TOP_K):
            raise InvalidKError(count, 1, MAX_TOP_K)
        share = self.min_relative_score
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise QueryError(f"min_relative_score must be a number from 0 to 1, not {share!r:.40}")
        budget = self.expand_to_section_tokens
        if budget is not None and not _is_count(budget, 1, None):
            raise QueryError(
                f"expand_to_section_tokens must be a whole number of at least 1, not {budget!r:.40}"
            )
        if self.source_url is not None and not _is_address(self.source_url):
            raise QueryError(
                f"source_url must begin with https://, http:// or /, not {self.source_url!r:.40}"
            )


def check_queries(queries: Sequence[Query], site: SiteSettings) -> None:
    """Check each query with `Query.check`, and that its `source_url` belongs to the site.

    Raises:
        QueryError: A query is invalid. If there are several queries, `position` and the message
            give the number of the first invalid query, counted from 1.
    """
    if isinstance(queries, str | bytes) or not isinstance(queries, Sequence):
        raise QueryError(f"the queries must be a list of queries, not {queries!r:.40}")
    for position, query in enumerate(queries, 1):
        try:
            check_query(query)
            if query.source_url is not None:
                link_source(query, site)
        except QueryError as error:
            error.position = position if len(queries) > 1 else None
            raise


def name_questions(queries: object) -> list[str]:
    """Return the questions of queries for the log. An object that is not a query has none."""
    listed = queries if isinstance(queries, Sequence) else ()
    return [getattr(query, "question", "") for query in listed]


def link_source(query: Query, site: SiteSettings) -> str | None:
    """Return the `source_url` of a checked query as a link that cannot leave the site, or None.

    Raises:
        QueryError: The address does not belong to the site.
    """
    if query.source_url is None:
        return None
    link = link_within_site(query.source_url, site)
    if link is None:
        raise QueryError(
            f"source_url must be an address below {site.base_url}, not {query.source_url!r:.80}. "
            "The address of the site is set by SITE_BASE_URL"
        )
    return link


def check_query(query: object) -> None:
    """Check that an object is a query, and that its fields are valid.

    Raises:
        QueryError: As described for `Query.check`, or the object is not a query.
    """
    if not isinstance(query, Query):
        raise QueryError(f"{query!r:.40} is not a Query. Pass Query(question) instead")
    query.check()


def _is_blank(text: str) -> bool:
    """Return True if a text has only white space, control characters and zero-width characters."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _is_count(value: object, lowest: int, highest: int | None) -> bool:
    return type(value) is int and lowest <= value <= (value if highest is None else highest)


def _is_address(url: object) -> bool:
    return isinstance(url, str) and url.startswith(("https://", "http://", "/"))
