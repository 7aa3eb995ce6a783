"""What a validation found, for people and for machines."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from typing import Final

RELEVANT_SHARE: Final = 0.8
"""Of probes with an expectation that must meet it; success criterion of the validation plan."""

_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One rule over the whole collection; `problem` is read only where it does not hold."""

    name: str
    passed: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """One query and what came back.

    Attributes:
        kind: Its class: keyword, phrase, complex or edge.
        relevant: Whether what was expected is among the results; None without an expectation.
        broken: Rules that the results break, each with what breaks it.
    """

    kind: str
    question: str
    result_count: int
    best_score: float
    best_url: str
    relevant: bool | None
    latency_ms: float
    broken: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AddressReport:
    """Cited addresses held against the site; `problems` maps an address to what is wrong."""

    where: str
    page_count: int
    address_count: int
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ValidationSuiteReport:
    """Everything that one validation found."""

    chunk_count: int
    document_count: int
    checks: tuple[CheckOutcome, ...]
    probes: tuple[ProbeOutcome, ...]
    addresses: AddressReport | None = None

    @property
    def relevant_share(self) -> float:
        """Share of the probes with an expectation that met it; 1 without any."""
        met = [probe.relevant for probe in self.probes if probe.relevant is not None]
        return sum(met) / len(met) if met else 1.0

    @property
    def failures(self) -> tuple[str, ...]:
        """What fell short, one line each; empty for a collection that passed."""
        lines = [f"{entry.name}: {entry.problem}" for entry in self.checks if not entry.passed]
        lines += [
            f"{_shorten(probe.question)!r} breaks {name}: {problem}"
            for probe in self.probes
            for name, problem in probe.broken
        ]
        if self.relevant_share < RELEVANT_SHARE:
            lines.append(f"only {self.relevant_share:.0%} of the probes found what they ask for")
        if self.addresses is not None:
            lines += [f"{url}: {problem}" for url, problem in self.addresses.problems.items()]
        return tuple(lines)

    @property
    def passed(self) -> bool:
        """Whether nothing fell short."""
        return not self.failures


def report_to_json(report: ValidationSuiteReport) -> str:
    """The report as one JSON document: all fields, and what follows from them."""
    latencies = [probe.latency_ms for probe in report.probes]
    record = {
        "passed": report.passed,
        "failures": list(report.failures),
        "relevant_share": report.relevant_share,
        "latency_ms_median": statistics.median(latencies) if latencies else 0.0,
        **asdict(report),
    }
    return json.dumps(record, indent=2, ensure_ascii=False)


def report_to_text(report: ValidationSuiteReport) -> str:
    """The report for people: checks, probes by class, addresses, and the verdict last."""
    lines = [
        f"Collection: {report.chunk_count} chunks of {report.document_count} documents",
        "",
        "Checks",
    ]
    lines += [
        f"  {_mark(entry.passed)} {entry.name}" + ("" if entry.passed else f" ({entry.problem})")
        for entry in report.checks
    ]
    lines += ["", "Queries (class, results, best score, ms, question)"]
    for probe in report.probes:
        good = not probe.broken and probe.relevant is not False
        lines.append(
            f"  {_mark(good)} {probe.kind:8} {probe.result_count:3} {probe.best_score:5.2f} "
            f"{probe.latency_ms:7.1f}  {_shorten(probe.question)}"
        )
    lines.append(f"  {report.relevant_share:.0%} of the queries found what they ask for")
    if report.addresses is not None:
        found = report.addresses
        counted = f"{found.address_count} on {found.page_count} pages"
        broken = f"{len(found.problems)} broken"
        lines += ["", f"Addresses in {found.where}: {counted}, {broken}"]
    lines += ["", "Passed" if report.passed else "Failed", *(f"  {f}" for f in report.failures)]
    return "\n".join(lines)


def _mark(good: object) -> str:
    return "ok  " if good else "FAIL"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 3]}..."
