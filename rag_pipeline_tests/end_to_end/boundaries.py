"""Wrap the services of an ingestion so that a test can kill it, or let it fail, at any write."""

# ruff: noqa: ANN401  # a wrapper around any service has the arguments and results of that service

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_pipeline_tests.book import replace_services

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_pipeline.ingestion.context import IngestionContext

_WRITES = {
    "cache": ("put_many",),
    "embedder": ("embed_passages",),
    "ledger": (
        "record",
        "record_begun",
        "record_failure",
        "forget",
        "claim",
        "release",
        "record_site",
    ),
    "store": ("upsert", "set_payloads", "delete"),
    "catalog": ("create", "switch_to", "discard", "end_loading"),
}
_HALVED = ("upsert", "set_payloads", "delete")
"""Writes of several points, which a store may complete only in part."""


class Boundaries:
    """A counter of the moments around writes, which calls a function at one of them.

    There is one moment before the first write, one after each write, and one during each write of
    several points.

    Args:
        act: Called with the service's name at the chosen moment. It kills the process or raises.
        at: Number of the chosen moment from 0, or the beginning of its name. None chooses none.
        lasting: Call `act` at every later moment of the same service too.
    """

    def __init__(
        self,
        act: Callable[[str], None] | None = None,
        at: int | str | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        self.names: list[str] = []
        self._act = act
        self._at = at
        self._lasting = lasting
        self._chosen_service = ""

    def pass_moment(self, service: str, name: str) -> None:
        """Record a moment, and call the function if this moment is the chosen one."""
        self.names.append(name)
        if self._is_chosen(service, name) and self._act is not None:
            self._chosen_service = service
            self._act(service)

    def is_next(self, service: str, name: str) -> bool:
        """Return True if the next moment is the chosen one, without recording it."""
        self.names.append(name)
        chosen = self._is_chosen(service, name)
        self.names.pop()
        return chosen

    def _is_chosen(self, service: str, name: str) -> bool:
        if self._lasting and self._chosen_service == service:
            return True
        if isinstance(self._at, str):
            return name.startswith(self._at)
        return len(self.names) - 1 == self._at


class _Watched:
    """A wrapper around a service that reports the service's writes to the boundaries."""

    def __init__(self, target: Any, service: str, boundaries: Boundaries) -> None:
        self._target = target
        self._service = service
        self._boundaries = boundaries

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name not in _WRITES[self._service]:
            return found
        return partial(self._write, name, found)

    def _write(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        label = f"{self._service}.{name}{_describe(arguments)}"
        first = arguments[0] if arguments else ()
        if name in _HALVED and not first:
            return method(*arguments)
        if not self._boundaries.names or self._service == "embedder":
            self._boundaries.pass_moment(self._service, f"before {label}")
        if name in _HALVED and len(first) > 1:
            if self._boundaries.is_next(self._service, f"during {label}"):
                method(_halve(first))
            self._boundaries.pass_moment(self._service, f"during {label}")
        result = method(*arguments)
        self._boundaries.pass_moment(self._service, f"after {label}")
        return result


class _WatchedStore(_Watched):
    """A wrapper around a store that reports the end of several writes too."""

    @contextmanager
    def write_together(self) -> Iterator[None]:
        with self._target.write_together():
            yield
        self._boundaries.pass_moment(self._service, "after store.write_together")


class _WatchedCatalog(_Watched):
    """A wrapper around a catalog whose stores are wrapped too."""

    def open(self, *arguments: Any) -> Any:
        return _WatchedStore(self._target.open(*arguments), "store", self._boundaries)

    def open_current(self, *arguments: Any) -> Any:
        return _WatchedStore(self._target.open_current(*arguments), "store", self._boundaries)


def watch(context: IngestionContext, boundaries: Boundaries) -> IngestionContext:
    """Return a context whose services report every write to the boundaries."""

    @contextmanager
    def announce() -> Iterator[Callable[[int, int], None]]:
        with context.services.announce() as tell:

            def tell_and_pass(done: int, total: int) -> None:
                tell(done, total)
                boundaries.pass_moment("progress", f"after progress.announce of {done}")

            yield tell_and_pass

    def open_ledger(collection_id: str) -> Any:
        return _Watched(context.services.open_ledger(collection_id), "ledger", boundaries)

    return replace_services(
        context,
        cache=_Watched(context.services.cache, "cache", boundaries),
        embedder=_Watched(context.services.embedder, "embedder", boundaries),
        catalog=_WatchedCatalog(context.services.catalog, "catalog", boundaries),
        open_ledger=open_ledger,
        announce=announce,
    )


def _halve(values: Any) -> Any:
    """Return the first half of a list or dictionary."""
    middle = len(values) // 2
    if isinstance(values, dict):
        return dict(list(values.items())[:middle])
    return list(values)[:middle]


def _describe(arguments: tuple[Any, ...]) -> str:
    """Return the document, or the number of values, that a write is about."""
    for argument in arguments:
        doc_id = getattr(argument, "doc_id", None)
        if doc_id:
            return f" {doc_id}"
    texts = [str(argument) for argument in arguments if isinstance(argument, str)]
    if texts and not texts[0].startswith("hashing/"):
        return " " + " ".join(texts)
    first = arguments[0] if arguments else ()
    return f" of {len(first)}" if hasattr(first, "__len__") and not texts else ""
