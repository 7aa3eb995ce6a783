"""Checks cited addresses against the site: its built folder, or the site over HTTP.

A page must exist and contain the cited section's id. Each page is read once.
"""

from __future__ import annotations

import re
from html import unescape
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

from rag_pipeline.evaluation.validation.report import AddressReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

PAGE_TIMEOUT_S: Final = 5.0
"""For one page over HTTP; from the validation plan."""

_ID: Final = re.compile(r"""\sid\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
_MAX_PAGE_BYTES: Final = 20_000_000


def check_built_site(urls: Iterable[str], site_dir: Path, base_url: str) -> AddressReport:
    """Look up addresses in the folder that the site was built into.

    Args:
        urls: Cited addresses, with or without scheme and host.
        site_dir: The folder that is served at the base URL.
        base_url: The site's base URL, for example `/my-book/`.
    """
    base_path = urlsplit(base_url).path.rstrip("/") + "/"

    def read(page: str) -> str:
        path = unquote(urlsplit(page).path)
        if not f"{path}/".startswith(base_path):
            message = f"is not below {base_path}"
            raise LookupError(message)
        name = path[len(base_path) :].strip("/")
        root = site_dir.resolve()
        for candidate in (root / name / "index.html", root / f"{name or 'index'}.html"):
            if candidate.resolve().is_relative_to(root) and candidate.is_file():
                return candidate.read_text("utf-8", "replace")
        message = "has no page"
        raise LookupError(message)

    return _check(urls, str(site_dir), read)


def check_served_site(urls: Iterable[str], origin: str) -> AddressReport:
    """Ask for addresses over HTTP.

    Args:
        urls: Cited addresses. Those without a host are read from `origin`.
        origin: For example `http://127.0.0.1:3000`.
    """

    def read(page: str) -> str:
        address = urljoin(origin, page)
        if urlsplit(address).scheme not in {"http", "https"}:
            message = "is no http address"
            raise LookupError(message)
        request = Request(address, headers={"User-Agent": "rag-pipeline validate"})  # noqa: S310  # scheme checked above
        try:
            with urlopen(request, timeout=PAGE_TIMEOUT_S) as answer:  # noqa: S310  # scheme checked above
                content: bytes = answer.read(_MAX_PAGE_BYTES)
        except HTTPError as error:
            error.close()
            message = f"answers HTTP {error.code}"
            raise LookupError(message) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            message = f"cannot be read ({type(reason).__name__})"
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
                ids_by_page[page] = "is no address"
        found = ids_by_page[page]
        if isinstance(found, str):
            problems[url] = found
        elif fragment and unquote(fragment) not in found:
            problems[url] = f"the page has no id {unquote(fragment)}"
    return AddressReport(where, len(ids_by_page), len(addresses), problems)


def _read_ids(html: str) -> set[str]:
    return {unescape("".join(match)) for match in _ID.findall(html)}
