"""The validation of a collection: its audit, queries about its own content, and its addresses.

The queries are derived from the collection, so that the validation works for any book.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

import httpx
import numpy as np

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.core.errors import PayloadError, QueryError, describe_kind
from rag_pipeline.core.payload import ChunkMetadata, read_metadata, read_text
from rag_pipeline.core.rules import (
    AUDIT_CHECKS,
    COLLECTION_RULES,
    SEARCH_CHECKS,
    CheckReport,
    Finding,
    find_faults,
)
from rag_pipeline.core.text.terms import extract_terms, extract_words
from rag_pipeline.evaluation.measures import since_ms
from rag_pipeline.evaluation.pages import Block, Items, Mark, Section, Table, shorten, to_markdown
from rag_pipeline.retrieval.hits import RESULT_RULES, check_results
from rag_pipeline.retrieval.queries import MAX_QUESTION_CHARS, MAX_TOP_K, Query
from rag_pipeline.retrieval.service import CollectionStats, read_peak_mb, read_stats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

RELEVANT_SHARE: Final = 0.8
"""Lowest share of probes that must find the document or term they expect (validation plan)."""

TARGETS: Final = {
    "latency_ms_p95": 500.0,
    "latency_ms_p99": 1000.0,
    "batch_latency_ms": 5000.0,
    "stats_latency_ms": 100.0,
}
"""Upper limits of measured times, from the validation plan. A missed limit is shown, but it is not
a failure, because a busy machine must not look like a damaged collection."""

_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """A probe, which is a test query about the collection's own content, and its results.

    Attributes:
        kind: Class of the query: keyword, phrase, complex or edge.
        relevant: True if the expected document or term is among the results; None if the probe
            expects nothing.
        findings: The rules that the results break.
    """

    kind: str
    question: str
    result_count: int
    best_score: float
    best_url: str
    relevant: bool | None
    latency_ms: float
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the results break no rule and contain the expected document or term, if any."""
        return not self.findings and self.relevant is not False


@dataclass(frozen=True, slots=True)
class AddressReport:
    """The outcome of checking cited addresses; `problems` maps broken addresses to problems."""

    where: str
    page_count: int
    address_count: int
    problems: dict[str, str]


@dataclass(frozen=True, slots=True)
class ValidationSuiteReport:
    """The complete result of one validation.

    Attributes:
        validated_at: Time of the validation, ISO 8601 in UTC.
        found: The findings of all checks, and the size of the collection.
        checks: What was checked, by the kind of the findings.
        relevant_share: Share of probes that found the document or term they expect; 1 if none
            expects any.
        performance: The content of `PERFORMANCE_METRICS.json`; see `measure_performance`.
    """

    validated_at: str
    found: CheckReport
    checks: dict[str, str]
    relevant_share: float
    probes: tuple[ProbeOutcome, ...]
    performance: dict[str, Any]
    addresses: AddressReport | None = None

    @property
    def passed(self) -> bool:
        """True if no problem was found."""
        return not self.found.findings

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON data: the verdict, the findings and all derived figures."""
        counts = Counter(finding.kind for finding in self.found.findings)
        return {
            "passed": self.passed,
            "validated_at": self.validated_at,
            **self.found.to_json(),
            "checks": {name: counts[name] for name in self.checks},
            "relevant_share": self.relevant_share,
            "success_rate": sum(not one.findings for one in self.probes) / len(self.probes),
            "latency_ms_median": self.performance["latency_ms_p50"],
            "probes": [asdict(probe) | {"passed": probe.passed} for probe in self.probes],
            "addresses": asdict(self.addresses) if self.addresses else None,
            "performance": self.performance,
        }


def measure_performance(
    validated_at: str,
    stats: CollectionStats,
    latencies_ms: Sequence[float],
    others: Mapping[str, float | None],
) -> dict[str, Any]:
    """Return the content of `PERFORMANCE_METRICS.json`: size, times and limits.

    Latencies are those of single queries, asked one after the other, and include embedding. A
    percentile is the lowest measured latency that this share of the queries did not exceed.

    Args:
        validated_at: Time of the validation, ISO 8601 in UTC.
        stats: Size of the collection, and the peak memory of this process as a text.
        latencies_ms: The latency of each query.
        others: Other times by name. A time is None if its queries met an invalid point, and then
            misses its limit.
    """
    p50, p95, p99 = np.percentile(latencies_ms, [50, 95, 99], method="inverted_cdf").tolist()
    total_s = sum(latencies_ms) / 1000
    measured: dict[str, float | None] = {
        "latency_ms_average": sum(latencies_ms) / len(latencies_ms),
        "latency_ms_p50": p50,
        "latency_ms_p95": p95,
        "latency_ms_p99": p99,
        "latency_ms_max": max(latencies_ms),
        **others,
        "throughput_queries_per_s": len(latencies_ms) / total_s if total_s else 0.0,
    }
    reached = {name: math.inf if value is None else value for name, value in measured.items()}
    return {
        "measured_at": validated_at,
        **stats,
        "query_count": len(latencies_ms),
        **measured,
        "targets": {
            name: {"highest": highest, "met": reached[name] <= highest}
            for name, highest in TARGETS.items()
        },
    }


def write_results(report: ValidationSuiteReport, folder: Path) -> tuple[Path, ...]:
    """Write the two `VALIDATION_RESULTS` files and `PERFORMANCE_METRICS.json`; return the paths."""
    markdown = to_markdown(describe_validation(report), level=2)
    contents = {
        "VALIDATION_RESULTS.md": f"# Validation results\n\n{markdown}\n",
        "VALIDATION_RESULTS.json": _to_json(report.to_json()),
        "PERFORMANCE_METRICS.json": _to_json(report.performance),
    }
    for name, text in contents.items():
        write_text_atomically(folder / name, text)
    return tuple(folder / name for name in contents)


def describe_validation(report: ValidationSuiteReport) -> tuple[Block, ...]:
    """Return the report as a tree: the verdict, failures, checks, queries, times and addresses."""
    found, measured = report.found, report.performance
    verdict = (
        f" at {report.validated_at}: collection {measured['collection_name']}, {found.point_count} "
        f"chunks of {found.doc_count} documents, vectors of dimension "
        f"{measured['vector_dimension']}. {report.relevant_share:.0%} of the queries found what "
        f"they expect; at least {RELEVANT_SHARE:.0%} must."
    )
    counts = Counter(finding.kind for finding in found.findings)
    checks = tuple(
        (_mark(not counts[name]), name, sentence, str(counts[name]))
        for name, sentence in report.checks.items()
    )
    probes = tuple(
        (
            _mark(probe.passed),
            probe.kind,
            shorten(probe.question, _SHOWN_CHARS),
            str(probe.result_count),
            f"{probe.best_score:.2f}",
            f"{probe.latency_ms:.1f}",
            probe.best_url,
        )
        for probe in report.probes
    )
    asked = ("", "class", "question", "results", "best score", "ms", "best result")
    blocks: list[Block] = [(Mark("Passed" if report.passed else "Failed", "strong"), verdict)]
    if found.findings:
        blocks.append(Section("Findings", (Items(tuple(map(str, found.findings))),)))
    blocks += [
        Section("Checks", (Table(("", "check", "what must hold", "findings"), checks),)),
        Section("Queries", (Table(asked, probes),)),
        Section(
            "Performance",
            (Table(("measure", "value", "limit of the plan"), tuple(_list_times(measured))),),
        ),
    ]
    site = report.addresses
    if site is not None:
        counted = f"{site.address_count} checked on {site.page_count} pages"
        blocks.append(f"Addresses in {site.where}: {counted}, {len(site.problems)} broken")
    return tuple(blocks)


def _list_times(measured: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, value and limit of each measured figure, as text; the limit may be empty."""
    for name, value in measured.items():
        if isinstance(value, float):
            highest = TARGETS.get(name)
            missed = "" if highest is None or value <= highest else ", missed"
            yield name, f"{value:.1f}", "" if highest is None else f"{highest:g}{missed}"
    yield "memory_usage", measured["memory_usage"], ""


def _to_json(record: object) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _mark(good: object) -> str:
    return "ok" if good else "FAIL"


PAGE_TIMEOUT_S: Final = 5.0
"""Timeout for reading one page over HTTP, in seconds; given by the validation plan."""

_ID: Final = re.compile(r"""\sid\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")


def check_addresses(urls: Iterable[str], site: str, base_url: str) -> AddressReport:
    """Check that a site has the cited addresses.

    Args:
        urls: Cited addresses, with or without scheme and host. Repeated addresses are checked once.
        site: Folder of the built site; or scheme and host of the served site, such as
            `http://127.0.0.1:3000`, from which addresses without a host are requested.
        base_url: The URL at which the folder is served, for example `/my-book/`.

    Returns:
        The number of pages and addresses checked, and the problem of each broken address.
    """
    addresses = sorted(set(urls))
    is_served = site.startswith(("http://", "https://"))
    ids_by_page: dict[str, set[str] | str] = {}
    problems: dict[str, str] = {}
    for url in addresses:
        page, _, fragment = url.partition("#")
        if page not in ids_by_page:
            try:
                ids_by_page[page] = (
                    _request_page(page, site) if is_served else _read_page(page, site, base_url)
                )
            except ValueError:
                ids_by_page[page] = "the address is not a valid URL"
        found = ids_by_page[page]
        if isinstance(found, str):
            problems[url] = found
        elif fragment and unquote(fragment) not in found:
            problems[url] = f"the page has no id {unquote(fragment)}"
    return AddressReport(site, len(ids_by_page), len(addresses), problems)


def _read_page(page: str, site: str, base_url: str) -> set[str] | str:
    """Return the ids of a page in the folder of the built site, or why there is no page."""
    base_path = urlsplit(base_url).path.rstrip("/") + "/"
    path = unquote(urlsplit(page).path)
    if not f"{path}/".startswith(base_path):
        return f"the address is not below {base_path}"
    name = path[len(base_path) :].strip("/")
    root = Path(site).resolve()
    for candidate in (root / name / "index.html", root / f"{name or 'index'}.html"):
        if candidate.resolve().is_relative_to(root) and candidate.is_file():
            return _read_ids(candidate.read_text("utf-8", "replace"))
    return "the site has no such page"


def _request_page(page: str, site: str) -> set[str] | str:
    """Return the ids of a page that is requested over HTTP, or why there is no page."""
    address = urljoin(site, page)
    if urlsplit(address).scheme not in {"http", "https"}:
        return "the address is not an http or https URL"
    try:
        answer = httpx.get(
            address,
            headers={"User-Agent": "rag-pipeline validate"},
            timeout=PAGE_TIMEOUT_S,
            follow_redirects=True,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"the page cannot be read ({describe_kind(error)})"
    if answer.is_error:
        return f"the site answered with HTTP status {answer.status_code}"
    return _read_ids(answer.content.decode("utf-8", "replace"))


def _read_ids(html: str) -> set[str]:
    return {unescape("".join(match)) for match in _ID.findall(html)}


_Entry = TypeVar("_Entry")

PER_CLASS: Final = 8
"""Highest number of probes per class, except edge cases; the plan asks for 8 to 10 in all."""

_BATCH_SIZE: Final = 10  # as in the validation plan

_MIN_LONG_CHARS: Final = 500  # length of a "very long query" in the validation plan
SITE_ADDRESS: Final = "site_address"
"""The kind of the finding that a cited address is broken."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A test query about the collection's own content, and what its results must contain.

    Attributes:
        kind: The form of the query: keyword (a word), phrase, complex (a sentence) or edge (an
            unusual input).
        expected_term: A word; at least one result must contain it or another form of it in its
            text, headings or tags. Empty if no word is expected.
        expected_doc: Id of a document that at least one result must belong to. Empty if no
            document is expected.
    """

    kind: str
    question: str
    expected_term: str = ""
    expected_doc: str = ""


def run_validation(
    retriever: Retriever, settings: Settings, audited: CheckReport | None, site: str | None = None
) -> ValidationSuiteReport:
    """Query the own content of a collection, and report the results with those of its audit.

    Args:
        retriever: A retriever over the collection.
        settings: The name of the collection, and the address of the book.
        audited: The report of its audit; None if it was not audited.
        site: Folder or address of the built site whose pages cited addresses must have; None skips
            this check. See `check_addresses`.

    Raises:
        StoreError: The collection is missing or empty, was built with another embedding model, or
            cannot be reached.
        EmbeddingError: A query could not be embedded.
    """
    validated_at = datetime.now(UTC).isoformat(timespec="seconds")
    with retriever.session.use() as index:
        points = index.scroll()
        started = time.perf_counter()
        stats = read_stats(index, settings.qdrant_collection)
        stats_ms = since_ms(started)
    findings = list(audited.findings) if audited else []
    readable = []
    for point in points:
        try:
            readable.append((read_metadata(point.payload), read_text(point.payload)))
        except PayloadError as error:
            findings.append(Finding("readable", "", error.chunk_id, str(error), point.point_id))
    chunks = [metadata for metadata, _ in readable]
    probes = derive_probes(readable)
    batch = [Query(probe.question) for probe in probes[:_BATCH_SIZE]]
    times = {
        "first_query_ms": _time(lambda: retriever.retrieve(batch[0])) or 0.0,  # loads the model
        "batch_size": len(batch),
        "batch_latency_ms": _time(lambda: retriever.retrieve_many(batch)),
        "stats_latency_ms": stats_ms,
    }
    outcomes = tuple(_run_probe(retriever, probe) for probe in probes)
    met = [probe.relevant for probe in outcomes if probe.relevant is not None]
    share = sum(met) / len(met) if met else 1.0
    findings += [
        *find_faults(COLLECTION_RULES, chunks),
        *_check_refusals(),
        *(finding for outcome in outcomes for finding in outcome.findings),
    ]
    if share < RELEVANT_SHARE:
        detail = f"only {share:.0%} of the queries found what they expect"
        findings.append(Finding("relevance", "", "", detail))
    checks = (AUDIT_CHECKS if audited else {}) | SEARCH_CHECKS
    checks |= {rule.name: rule.ensures for rule in COLLECTION_RULES}
    checks |= {rule.name: rule.ensures for rule in RESULT_RULES}
    addresses = None
    if site is not None:
        urls = (metadata.url for metadata in chunks)
        addresses = check_addresses(urls, site, settings.site.base_url)
        checks[SITE_ADDRESS] = "The site has every cited page and section."
        broken = addresses.problems.items()
        findings += [Finding(SITE_ADDRESS, "", "", f"{url}: {what}") for url, what in broken]
    stats["memory_usage"] = f"{read_peak_mb():.1f} MB"  # the queries have loaded the model
    latencies_ms = [probe.latency_ms for probe in outcomes]
    doc_count = len({metadata.doc_path for metadata in chunks})
    return ValidationSuiteReport(
        validated_at=validated_at,
        found=CheckReport(index.collection_id, doc_count, len(points), tuple(findings)),
        checks=checks,
        relevant_share=share,
        probes=outcomes,
        performance=measure_performance(validated_at, stats, latencies_ms, times),
        addresses=addresses,
    )


def derive_probes(chunks: Sequence[tuple[ChunkMetadata, str]]) -> list[Probe]:
    """Derive test queries from a collection's content; equal collections give equal queries.

    Keyword queries are tags and words of titles, phrase queries are section headings, and complex
    queries ask how a section fits into its page. They are taken at even distances from the whole
    book in the version and language that searches cover by default. Edge cases, such as one letter
    or 5,000 characters, are added. Longer queries are cut.

    Args:
        chunks: Metadata and text of every chunk, in any order.
    """
    searched = [one for one in chunks if one[0].is_latest and one[0].is_default_locale]
    ordered = sorted(searched, key=lambda chunk: (chunk[0].doc_path, chunk[0].chunk_index))
    metadata = [entry for entry, _ in ordered]
    tags = sorted({tag for entry in metadata for tag in entry.tags})
    titles = sorted({word for entry in metadata for word in extract_words(entry.title)})
    keywords = [word for word in [*tags, *titles] if len(word) > 2 and extract_terms(word)]
    headed = [entry for entry in metadata if len(extract_terms(entry.section_heading)) > 1]
    probes = [Probe("keyword", word, expected_term=word) for word in _spread(keywords[:400])]
    probes += [
        Probe("phrase", entry.section_heading, expected_doc=entry.doc_path)
        for entry in _spread(_unique_headings(headed))
    ]
    probes += [
        Probe(
            "complex",
            f"How does the part about {entry.section_heading} fit into {entry.title}, and why?",
            expected_doc=entry.doc_path,
        )
        for entry in _spread(_unique_headings(headed)[1:])
    ]
    plain = ["a", "123", "special@chars!", "ü ñ 中文 🤖", "what is it", "x" * 300]
    probes += [Probe("edge", question) for question in plain]
    long_chunks = [chunk for chunk in ordered if len(chunk[1]) > _MIN_LONG_CHARS]
    if long_chunks:
        entry, text = long_chunks[len(long_chunks) // 2]
        probes.append(Probe("edge", text, expected_doc=entry.doc_path))
    probes.append(Probe("edge", "why " * (MAX_QUESTION_CHARS // 4)))
    return [replace(probe, question=probe.question[:MAX_QUESTION_CHARS]) for probe in probes]


def _time(action: Callable[[], object]) -> float | None:
    """Return the milliseconds that an action takes; None if it meets a point with a bad payload."""
    started = time.perf_counter()
    with suppress(PayloadError):  # the probes report the damaged point
        action()
        return since_ms(started)
    return None


def _run_probe(retriever: Retriever, probe: Probe) -> ProbeOutcome:
    query = Query(probe.question)
    started = time.perf_counter()
    try:
        first = retriever.retrieve(query).chunks
        latency_ms = since_ms(started)
        second = retriever.retrieve(query).chunks
    except PayloadError as error:  # a damaged point must not hide other problems
        first, latency_ms = (), since_ms(started)
        checks = {"readable": str(error)}
    else:
        checks = check_results(first, second)
    return ProbeOutcome(
        kind=probe.kind,
        question=probe.question,
        result_count=len(first),
        best_score=first[0].score if first else 0.0,
        best_url=first[0].citation.url if first else "",
        relevant=_is_relevant(probe, first),
        latency_ms=latency_ms,
        findings=tuple(
            Finding(name, "", "", f"query {shorten(probe.question, _SHOWN_CHARS)!r}: {problem}")
            for name, problem in sorted(checks.items())
            if problem
        ),
    )


def _is_relevant(probe: Probe, hits: Sequence[ScoredChunk]) -> bool | None:
    """Return True if a result has the expected document or term; None if nothing is expected."""
    if probe.expected_doc:
        return any(hit.metadata.doc_path == probe.expected_doc for hit in hits)
    if not probe.expected_term:
        return None
    wanted = set(extract_terms(probe.expected_term))
    texts = (
        " ".join((*hit.metadata.heading_breadcrumb, *hit.metadata.tags, hit.text)) for hit in hits
    )
    return any(wanted & set(extract_terms(text)) for text in texts)


def _check_refusals() -> Iterator[Finding]:
    """Check that three invalid queries are refused with their error codes.

    The queries are an empty one, one that is too long, and one with a too high `top_k`.
    """
    cases = {
        "QUERY_EMPTY": Query("   "),
        "QUERY_TOO_LONG": Query("x" * (MAX_QUESTION_CHARS + 1)),
        "INVALID_K": Query("x", top_k=MAX_TOP_K + 1),
    }
    for code, query in cases.items():
        found = "no error"
        try:
            query.check()
        except QueryError as error:
            found = error.code
        if found != code:
            yield Finding("refusals", "", "", f"the outcome was {found} instead of {code}")


def _unique_headings(entries: Sequence[ChunkMetadata]) -> list[ChunkMetadata]:
    """Return one entry for each section heading that occurs in only one document, in book order.

    A heading that occurs in several documents would be an ambiguous query.
    """
    places: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        places[entry.section_heading].add(entry.doc_path)
    first = {entry.section_heading: entry for entry in reversed(entries)}
    kept = [entry for heading, entry in first.items() if len(places[heading]) == 1]
    return sorted(kept, key=lambda entry: (entry.doc_path, entry.chunk_index))


def _spread(entries: Sequence[_Entry]) -> list[_Entry]:
    """Return at most `PER_CLASS` (8) of the entries, at even distances."""
    count = min(PER_CLASS, len(entries))
    return [entries[at * len(entries) // count] for at in range(count)]
