"""Say which settings of a site changed since the last ingestion, and which pages that concerns."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.settings.rules import OPEN, SITE_FIELDS
from rag_pipeline.core.sources import Source, find_source
from rag_pipeline.ingestion.planning import find_ledger
from rag_pipeline.ingestion.site.detection import name_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.site.addresses import RecordedSite
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan

_PLACES: Final = {"folder", "fallback", "prefix"}


def list_changes(context: IngestionContext, scan: Scan) -> list[str]:
    """Return what changed on the site since the last ingestion, as sentences for the report.

    Call it before the ingestion, which records the site as it is then.
    """
    ledger = find_ledger(context, scan)
    return describe_changes(context.settings, ledger.read_site() if ledger else None, scan)


def describe_changes(settings: Settings, recorded: RecordedSite | None, scan: Scan) -> list[str]:
    """Return sentences that say what changed on the site, and which pages are indexed for it.

    Args:
        settings: The settings of the book.
        recorded: The site for which the index was built; None if it is not known.
        scan: A scan of all documents.

    Returns:
        An empty list if neither the settings of the site nor its sources changed.
    """
    if recorded is None:
        return []
    lines = [f"The site changed: {one}" for one in _compare_settings(recorded.site, settings.site)]
    before, now = dict[str, Source](), dict[str, Source]()
    if recorded.sources is not None and (recorded.sources or settings.sources):
        before = _by_prefix(recorded.sources, recorded.site)
        now = _by_prefix(settings.sources or (), settings.site)
        lines += _compare_sources(before, now)
        lines += _list_sources("not part of it any more", before, now)
        lines += _list_sources("new", now, before)
    if not lines:
        return []
    again, added = [], []
    for doc in scan.plan.process:
        entry = scan.entries.get(doc.doc_id)
        if entry is None:
            added.append(doc.doc_id)
        elif entry.sha256 == doc.sha256:
            again.append(doc.doc_id)
    lines += _list_pages("indexed again with an unchanged text", again)
    lines += _list_pages("new", _choose_pages(added, now, before))
    lines += _list_pages("removed", _choose_pages(scan.plan.delete, before, now))
    return lines


def _by_prefix(sources: Sequence[Source], site: SiteSettings) -> dict[str, Source]:
    """Return the sources by prefix; without any, the docs folder is one."""
    docs = Source(
        name="docs", folder=Path(), prefix="", route_base_path=site.route_base_path.strip("/")
    )
    return {source.prefix: source for source in sources or (docs,)}


def _compare_settings(before: SiteSettings, now: SiteSettings) -> Iterator[str]:
    for name in SITE_FIELDS:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            unset = "/" if name == "route_base_path" else OPEN
            yield f"SITE_{name.upper()} was {_show(old, unset)} and is {_show(new, unset)}"


def _compare_sources(before: dict[str, Source], now: dict[str, Source]) -> Iterator[str]:
    """Yield a sentence for each way in which sources changed, with the sources that did."""
    changed: dict[str, list[str]] = {}
    for prefix in before.keys() & now.keys():
        old, new = before[prefix], now[prefix]
        parts = [
            f"{name} was {_show(old_value, 'not set')} and is {_show(new_value, 'not set')}"
            for name in (field.name for field in fields(Source) if field.name not in _PLACES)
            if (old_value := getattr(old, name)) != (new_value := getattr(new, name))
        ]
        if parts:
            changed.setdefault(", ".join(parts), []).append(str(new))
    for what, names in sorted(changed.items()):
        yield f"The site changed: of {name_some(sorted(names))}, {what}"


def _list_sources(what: str, these: dict[str, Source], others: dict[str, Source]) -> Iterator[str]:
    names = sorted(str(these[prefix]) for prefix in these.keys() - others.keys())
    if names:
        verb = "is" if len(names) == 1 else "are"
        yield f"The site changed: {name_some(names)} {verb} {what}"


def _choose_pages(
    doc_ids: Iterable[DocId], these: dict[str, Source], others: dict[str, Source]
) -> list[DocId]:
    """Return the documents of sources that the others lack, or that choose other files there."""
    chosen, sources = [], tuple(these.values())
    for doc_id in doc_ids:
        source = find_source(sources, doc_id)
        other = others.get(source.prefix) if source else None
        if source and (source.include, source.exclude) != (
            (other.include, other.exclude) if other else ()
        ):
            chosen.append(doc_id)
    return chosen


def _list_pages(what: str, doc_ids: Sequence[DocId]) -> Iterator[str]:
    if doc_ids:
        count = "1 page is" if len(doc_ids) == 1 else f"{len(doc_ids)} pages are"
        yield f"For this, {count} {what}: {name_some(doc_ids)}"


def _show(value: object, unset: str) -> str:
    if value is None or value == "":
        return unset
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
