"""The results of a validation and their output, and the check of page addresses."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field
from html import unescape
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

import numpy as np

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.core.errors import describe_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rag_pipeline.retrieval.service import CollectionStats


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
class CheckOutcome:
    """The outcome of one check of the collection; `problem` is empty if the check passed."""

    name: str
    passed: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """A probe, which is a test query about the collection's own content, and its results.

    Attributes:
        kind: Class of the query: keyword, phrase, complex or edge.
        relevant: True if the expected document or term is among the results; None if the probe
            expects nothing.
        broken: Each rule that the results break: its name and a description of the problem.
    """

    kind: str
    question: str
    result_count: int
    best_score: float
    best_url: str
    relevant: bool | None
    latency_ms: float
    broken: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """True if the results break no rule and contain the expected document or term, if any."""
        return not self.broken and self.relevant is not False


@dataclass(frozen=True, slots=True)
class AddressReport:
    """The outcome of checking cited addresses; `problems` maps broken addresses to problems."""

    where: str
    page_count: int
    address_count: int
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timings:
    """Times that do not belong to a single probe, in milliseconds.

    Attributes:
        first_query_ms: Time of the first query, which loads the model; not among the latencies.
        batch_latency_ms: Time of a batch of `batch_size` queries; None if it met an invalid point.
        stats_latency_ms: Time of counting the collection's vectors.
    """

    first_query_ms: float
    batch_size: int
    batch_latency_ms: float | None
    stats_latency_ms: float


@dataclass(frozen=True, slots=True)
class ValidationSuiteReport:
    """The complete result of one validation.

    Attributes:
        validated_at: Time of the validation, ISO 8601 in UTC.
        stats: Size of the collection, and the peak memory of this process as a text.
    """

    validated_at: str
    stats: CollectionStats
    timings: Timings
    chunk_count: int
    document_count: int
    checks: tuple[CheckOutcome, ...]
    probes: tuple[ProbeOutcome, ...]
    addresses: AddressReport | None = None

    @property
    def relevant_share(self) -> float:
        """Share of probes that found the document or term they expect; 1 if none expects any."""
        met = [probe.relevant for probe in self.probes if probe.relevant is not None]
        return sum(met) / len(met) if met else 1.0

    @property
    def failures(self) -> tuple[str, ...]:
        """One line for each problem that was found; empty if the validation passed."""
        lines = [f"{entry.name}: {entry.problem}" for entry in self.checks if not entry.passed]
        lines += [
            f"query {_shorten(probe.question)!r} breaks the rule {name}: {problem}"
            for probe in self.probes
            for name, problem in probe.broken
        ]
        if self.relevant_share < RELEVANT_SHARE:
            lines.append(f"only {self.relevant_share:.0%} of the queries found what they expect")
        if self.addresses is not None:
            lines += [f"{url}: {problem}" for url, problem in self.addresses.problems.items()]
        return tuple(lines)

    @property
    def passed(self) -> bool:
        """True if no problem was found."""
        return not self.failures


def measure_performance(report: ValidationSuiteReport) -> dict[str, object]:
    """Return the times, limits and collection size that `PERFORMANCE_METRICS.json` contains.

    Latencies are those of single queries, asked one after the other, and include embedding. A
    percentile is the lowest measured latency that this share of the queries did not exceed.
    """
    spent = [probe.latency_ms for probe in report.probes] or [0.0]
    p50, p95, p99 = np.percentile(spent, [50, 95, 99], method="inverted_cdf").tolist()
    total_s = sum(spent) / 1000
    measured: dict[str, float | None] = {
        "latency_ms_average": sum(spent) / len(spent),
        "latency_ms_p50": p50,
        "latency_ms_p95": p95,
        "latency_ms_p99": p99,
        "latency_ms_max": max(spent),
        **asdict(report.timings),
        "throughput_queries_per_s": len(report.probes) / total_s if total_s else 0.0,
    }
    reached = {name: math.inf if value is None else value for name, value in measured.items()}
    return {
        "measured_at": report.validated_at,
        **report.stats,
        "query_count": len(report.probes),
        **measured,
        "targets": {
            name: {"highest": highest, "met": reached[name] <= highest}
            for name, highest in TARGETS.items()
        },
    }


def report_to_record(report: ValidationSuiteReport) -> dict[str, object]:
    """Return the report as JSON data: its fields, the verdict and all derived figures."""
    performance = measure_performance(report)
    record = asdict(report)
    del record["stats"], record["timings"]  # `performance` contains them under the plan's names
    return {
        "passed": report.passed,
        "failures": list(report.failures),
        "relevant_share": report.relevant_share,
        "success_rate": sum(not probe.broken for probe in report.probes) / len(report.probes),
        "latency_ms_median": performance["latency_ms_p50"],
        **record,
        "performance": performance,
    }


def write_results(report: ValidationSuiteReport, folder: Path) -> tuple[Path, ...]:
    """Write the two `VALIDATION_RESULTS` files and `PERFORMANCE_METRICS.json`; return the paths."""
    contents = {
        "VALIDATION_RESULTS.md": report_to_markdown(report),
        "VALIDATION_RESULTS.json": _to_json(report_to_record(report)),
        "PERFORMANCE_METRICS.json": _to_json(measure_performance(report)),
    }
    for name, text in contents.items():
        write_text_atomically(folder / name, text)
    return tuple(folder / name for name in contents)


def report_to_text(report: ValidationSuiteReport) -> str:
    """Return the report as terminal text: checks, queries, times, addresses and the verdict."""
    lines = [f"Collection: {report.chunk_count} chunks of {report.document_count} documents", ""]
    lines.append("Checks")
    for entry in report.checks:
        problem = f" ({entry.problem})" if entry.problem else ""
        lines.append(f"  {_mark(entry.passed):4} {entry.name}{problem}")
    lines += ["", "Queries (class, results, best score, ms, question)"]
    lines += [
        f"  {_mark(probe.passed):4} {probe.kind:8} {probe.result_count:3} {probe.best_score:5.2f} "
        f"{probe.latency_ms:7.1f}  {_shorten(probe.question)}"
        for probe in report.probes
    ]
    lines.append(f"  {report.relevant_share:.0%} of the queries found what they expect")
    lines += ["", "Performance (with the limits of the validation plan)"]
    lines += [
        f"  {name:26}{value:>10}  {target}".rstrip() for name, value, target in _list_times(report)
    ]
    if report.addresses is not None:
        lines += ["", _describe_addresses(report.addresses)]
    lines += ["", "Passed" if report.passed else "Failed", *(f"  {f}" for f in report.failures)]
    return "\n".join(lines)


def report_to_markdown(report: ValidationSuiteReport) -> str:
    """Return the report as Markdown, which is the content of `VALIDATION_RESULTS.md`."""
    stats = report.stats
    checks = [(_mark(entry.passed), entry.name, entry.problem) for entry in report.checks]
    probes = [
        (
            _mark(probe.passed),
            probe.kind,
            _shorten(probe.question),
            probe.result_count,
            f"{probe.best_score:.2f}",
            probe.best_url,
            f"{probe.latency_ms:.1f}",
        )
        for probe in report.probes
    ]
    verdict = (
        f"**{'Passed' if report.passed else 'Failed'}** at {report.validated_at}: collection "
        f"`{stats['collection_name']}`, {report.chunk_count} chunks of {report.document_count} "
        f"documents, vectors of dimension {stats['vector_dimension']}. {report.relevant_share:.0%} "
        f"of the queries found what they expect; at least {RELEVANT_SHARE:.0%} must."
    )
    lines = ["# Validation results", "", verdict]
    if report.failures:
        lines += ["", "## Failures", "", *(f"- {_escape(line)}" for line in report.failures)]
    lines += ["", "## Checks", "", *_tabulate(("", "check", "problem"), checks)]
    asked = ("", "class", "question", "results", "best score", "best result", "ms")
    lines += ["", "## Queries", "", *_tabulate(asked, probes)]
    measured = ("measure", "value", "limit of the plan")
    lines += ["", "## Performance", "", *_tabulate(measured, _list_times(report))]
    if report.addresses is not None:
        lines += ["", "## Addresses", "", _describe_addresses(report.addresses)]
    return "\n".join(lines) + "\n"


def _list_times(report: ValidationSuiteReport) -> list[tuple[str, str, str]]:
    """Return the name, value and limit of each measured figure, as text; the limit may be empty."""
    performance = measure_performance(report)
    rows = []
    for name, value in performance.items():
        if isinstance(value, float):
            highest = TARGETS.get(name)
            missed = "" if highest is None or value <= highest else ", missed"
            rows.append((name, f"{value:.1f}", "" if highest is None else f"{highest:g}{missed}"))
    return [*rows, ("memory_usage", report.stats["memory_usage"], "")]


def _describe_addresses(found: AddressReport) -> str:
    counted = f"{found.address_count} checked on {found.page_count} pages"
    return f"Addresses in {found.where}: {counted}, {len(found.problems)} broken"


def _tabulate(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    cells = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(_escape(str(cell)) for cell in row) + " |" for row in cells]


def _escape(text: str) -> str:
    """Return a text on one line, with Markdown and HTML characters escaped by backslashes."""
    plain = " ".join(text.split())
    for mark in "\\`*_|<>[]":
        plain = plain.replace(mark, f"\\{mark}")
    return plain


def _to_json(record: object) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _mark(good: object) -> str:
    return "ok" if good else "FAIL"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 3]}..."


PAGE_TIMEOUT_S: Final = 5.0
"""Timeout for reading one page over HTTP, in seconds; given by the validation plan."""

_ID: Final = re.compile(r"""\sid\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
_MAX_PAGE_BYTES: Final = 20_000_000


def check_built_site(urls: Iterable[str], site_dir: Path, base_url: str) -> AddressReport:
    """Check cited addresses against the folder of the built site.

    Args:
        urls: Cited addresses, with or without scheme and host. Repeated addresses are checked once.
        site_dir: The folder that contains the built site.
        base_url: The URL at which the folder is served, for example `/my-book/`.

    Returns:
        The number of pages and addresses checked, and the problem of each broken address.
    """
    base_path = urlsplit(base_url).path.rstrip("/") + "/"

    def read(page: str) -> str:
        path = unquote(urlsplit(page).path)
        if not f"{path}/".startswith(base_path):
            message = f"the address is not below {base_path}"
            raise LookupError(message)
        name = path[len(base_path) :].strip("/")
        root = site_dir.resolve()
        for candidate in (root / name / "index.html", root / f"{name or 'index'}.html"):
            if candidate.resolve().is_relative_to(root) and candidate.is_file():
                return candidate.read_text("utf-8", "replace")
        message = "the site has no such page"
        raise LookupError(message)

    return _check(urls, str(site_dir), read)


def check_served_site(urls: Iterable[str], origin: str) -> AddressReport:
    """Check cited addresses by requesting their pages over HTTP.

    Args:
        urls: Cited addresses. Addresses without a host are requested from `origin`. Repeated
            addresses are checked once.
        origin: Scheme and host of the site, for example `http://127.0.0.1:3000`.

    Returns:
        The number of pages and addresses checked, and the problem of each broken address.
    """

    def read(page: str) -> str:
        address = urljoin(origin, page)
        if urlsplit(address).scheme not in {"http", "https"}:
            message = "the address is not an http or https URL"
            raise LookupError(message)
        request = Request(address, headers={"User-Agent": "rag-pipeline validate"})  # noqa: S310  # scheme checked above
        try:
            with urlopen(request, timeout=PAGE_TIMEOUT_S) as answer:  # noqa: S310  # scheme checked above
                content: bytes = answer.read(_MAX_PAGE_BYTES)
        except HTTPError as error:
            error.close()
            message = f"the site answered with HTTP status {error.code}"
            raise LookupError(message) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            cause = describe_kind(reason) if isinstance(reason, Exception) else reason
            message = f"the page cannot be read ({cause})"
            raise LookupError(message) from error
        return content.decode("utf-8", "replace")

    return _check(urls, origin, read)


def _check(urls: Iterable[str], where: str, read: Callable[[str], str]) -> AddressReport:
    addresses = sorted(set(urls))
    ids_by_page: dict[str, set[str] | str] = {}
    problems: dict[str, str] = {}
    for url in addresses:
        page, _, fragment = url.partition("#")
        if page not in ids_by_page:
            try:
                ids_by_page[page] = _read_ids(read(page))
            except LookupError as error:
                ids_by_page[page] = str(error.args[0])
            except ValueError:
                ids_by_page[page] = "the address is not a valid URL"
        found = ids_by_page[page]
        if isinstance(found, str):
            problems[url] = found
        elif fragment and unquote(fragment) not in found:
            problems[url] = f"the page has no id {unquote(fragment)}"
    return AddressReport(where, len(ids_by_page), len(addresses), problems)


def _read_ids(html: str) -> set[str]:
    return {unescape("".join(match)) for match in _ID.findall(html)}
