"""Open the files of a site, which other people wrote.

Every file that is read or written for a site is opened here: only regular files, only inside the
root of the site, and only up to a size. Symbolic links may lead anywhere inside the root.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 8 * 1024**2
"""The size of the largest page or imported file."""

MAX_BUILD_BYTES: Final = 64 * 1024**2
"""The size of the largest file that a build of the site writes, such as its manifest."""

CONFIG_NAMES: Final = tuple(
    f"docusaurus.config.{suffix}" for suffix in ("ts", "mts", "cts", "js", "mjs", "cjs")
)
"""The names of a site's configuration, in the order in which Docusaurus looks for them."""


class SiteFileError(PermissionError):
    """A file of a site may not be opened. `strerror` is a clause that says why."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(errno.EACCES, problem, str(path))


def find_root(folder: Path) -> Path:
    """Return the folder outside which no file of a site is opened, with links resolved.

    It is the repository that contains the folder; without a repository, the folder of the
    `docusaurus.config` above it; without one, the folder itself. The home folder of the user is
    not a root, although a repository may be there.
    """
    # Each page asks for its root, and texts are faster than paths.
    parent = place = os.path.abspath(folder)  # noqa: PTH100  # a link is followed only inside the root
    home, site = os.path.abspath(os.path.expanduser("~")), ""  # noqa: PTH100, PTH111  # never fails
    while parent not in {home, above := os.path.dirname(parent)}:  # noqa: PTH120  # see above
        if os.path.lexists(f"{parent}/.git"):
            return Path(os.path.realpath(parent))
        if not site and any(os.path.lexists(f"{parent}/{name}") for name in CONFIG_NAMES):
            site = parent
        parent = above
    return Path(os.path.realpath(site or place))


def find_page_root(place: str, path: Path) -> Path:
    """Return the root for a page.

    Args:
        place: Path of the page below its docs folder, with `/` between its parts.
        path: Path of the page on this machine.
    """
    folder = os.path.abspath(path)  # noqa: PTH100  # as above
    for _ in place.split("/"):
        folder = os.path.dirname(folder)  # noqa: PTH120  # as above
    return find_root(Path(folder))


def is_inside(path: Path, root: Path) -> bool:
    """Return True if a path leads, after all links, into a root or is the root."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):
        return False


def read_site_file(path: Path, root: Path | None, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a regular file of a site.

    Args:
        path: The file. It may be a link.
        root: The folder in which it must be; None if the user named the file.
        max_bytes: The size of the largest file that is read.

    Raises:
        SiteFileError: The file is outside the root, too large, or not a regular file.
        OSError: The file cannot be read.
    """
    try:
        place = os.path.realpath(path, strict=True)
    except ValueError as error:  # a name with NUL
        raise FileNotFoundError(errno.ENOENT, "the name is not valid", str(path)) from error
    if root is not None and not Path(place).is_relative_to(os.path.realpath(root)):
        raise SiteFileError(path, f"it leads out of the folder {root}")
    # Opening a pipe would wait for its writer without O_NONBLOCK.
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise SiteFileError(path, "it is not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise SiteFileError(path, f"it is larger than {max_bytes // 1024} kB")
    return content


def write_site_file(folder: Path, name: str, text: str) -> None:
    """Write a file below a folder. Readers of the folder never see half of it.

    No link is followed out of the folder, and a link with the name of the file is replaced.

    Args:
        folder: The folder.
        name: Path of the file below the folder, with `/` between its parts.
        text: The text of the file.

    Raises:
        SiteFileError: The path leads out of the folder.
        OSError: The file cannot be written.
    """
    path = folder / name
    parts = name.split("/")
    if {"", ".", ".."} & set(parts) or "\0" in name or not is_inside(path.parent, folder):
        raise SiteFileError(path, f"it leads out of the folder {folder}")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123  # as above
            file.write(text)
            os.fchmod(descriptor, 0o644)
        os.replace(part, path)  # noqa: PTH105  # a text
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
