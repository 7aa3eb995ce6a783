"""The built website, served on the same port as the API."""

from __future__ import annotations

import mimetypes
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.static_search import FOLDER, MANIFEST_FILE

if TYPE_CHECKING:
    import os

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import Scope

_HASHED: Final = "public, max-age=31536000, immutable"
mimetypes.add_type("text/markdown", ".md")  # the system's table of types may lack it


class SiteFiles(StaticFiles):
    """The files of a built Docusaurus site, with addresses that have no `.html`."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the file of a path, or the site's page for missing pages."""
        response = await super().get_response(path, scope)
        response.headers.setdefault("cache-control", "no-cache")
        return response

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find the file of a path that may have no `.html` or `index.html`."""
        clean = path.rstrip("/")
        for name in (path, f"{clean}.html", f"{clean}/index.html"):
            try:
                full_path, found = super().lookup_path(name)
            except (OSError, ValueError):  # a name that is too long or contains NUL
                break
            if found is not None and stat.S_ISREG(found.st_mode):
                return full_path, found
        return "", None

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return a file with its caching header.

        Names under `assets` contain a hash, so browsers may keep these files.
        """
        response = super().file_response(full_path, stat_result, scope, status_code)
        relative = Path(full_path).resolve().relative_to(Path(str(self.directory)).resolve())
        response.headers["cache-control"] = _HASHED if relative.parts[0] == "assets" else "no-cache"
        return response


def find_site(docs_dir: Path, chosen: Path | None) -> Path | None:
    """Return the folder of the built website.

    Args:
        docs_dir: The folder of the documents. Docusaurus writes the website into `build` next to
            it.
        chosen: The folder that the caller chose; None looks for the usual one.

    Returns:
        The folder; None if there is no usual one.

    Raises:
        ConfigurationError: The chosen folder contains no website.
    """
    folder = docs_dir.parent / "build" if chosen is None else chosen
    if (folder / "index.html").is_file():
        return folder
    if chosen is None:
        return None
    remedy = "Build the website with `npm run build` in its folder, or leave the option out"
    raise ConfigurationError("--site", f"{chosen} contains no index.html", remedy)


def find_site_path(site_base_url: str) -> str:
    """Return the path of SITE_BASE_URL, which may be a full address; ends with a slash."""
    return urlsplit(site_base_url).path.rstrip("/") + "/"


def mount_site(app: Starlette, folder: Path, base_path: str) -> None:
    """Serve the built website below a path; `/` redirects there.

    Call it after all other routes were added, because the site may be at the root.

    Args:
        app: The application.
        folder: The folder of the built site.
        base_path: The path of the site; ends with a slash.
    """

    def redirect(_: Request) -> Response:
        return RedirectResponse(base_path)

    def hide_index(_: Request) -> Response:
        """Answer that the site has no index, so that the panel asks this service."""
        return JSONResponse({"index": None}, headers={"cache-control": "no-cache"})

    if base_path != "/":
        app.router.routes.append(Route("/", redirect))
        app.router.routes.append(Route(base_path.rstrip("/"), redirect))
    app.router.routes.append(Route(f"{base_path}{FOLDER}/{MANIFEST_FILE}", hide_index))
    app.router.routes.append(Mount(base_path.rstrip("/"), SiteFiles(directory=folder, html=True)))
