"""Checks of cited addresses: each page must exist and contain the id of the cited section.

Pages are read from the folder of the built site or over HTTP, each page once.
"""

from __future__ import annotations

import re
from html import unescape
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.evaluation.validation.report import AddressReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

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
