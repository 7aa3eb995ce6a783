"""The place of a state that several machines share: the settings STATE_URL and STATE_NAME."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from upath import UPath

    from rag_pipeline.core.settings import Settings

_LOCAL = frozenset({"", "file", "local"})  # protocols of paths on this machine
_KEEP_NO_LISTINGS = _LOCAL | {"sftp", "ssh"}  # and do not know the option that turns it off


def open_root(url: str) -> UPath:
    """Return the folder or object store at the URL of the setting STATE_URL.

    A URL of a local folder becomes a local path, so that files in it are written atomically. An
    object store is opened without a cache of its listings. Such a cache hides what other processes
    write, and reading an object that another process wrote again fails with it.

    Raises:
        ConfigurationError: The URL is not valid.
        MissingDependencyError: The package for its scheme, such as s3fs, is not installed.
    """
    from upath import UPath  # noqa: PLC0415  # needed only if STATE_URL is set

    try:
        root = UPath(url)
        if root.protocol not in _KEEP_NO_LISTINGS:
            root = UPath(url, use_listings_cache=False)
        root.fs  # noqa: B018  # creates the file system, so that an error appears here
    except ImportError as error:
        from fsspec.registry import known_implementations  # type: ignore[import-untyped]  # noqa: PLC0415  # needed only here

        place = known_implementations.get(url.partition(":")[0], {}).get("class", "fsspec")
        raise MissingDependencyError(place.partition(".")[0]) from error
    except Exception as error:  # each file system raises its own errors
        problem = f"the URL cannot be opened ({error})"
        remedy = "Check the part before :// and the rest of the address"
        raise ConfigurationError("STATE_URL", problem, remedy) from error
    return UPath(root.path) if root.protocol in _LOCAL else root


def open_shared_state(settings: Settings) -> UPath | None:
    """Return the folder of the book's state at STATE_URL; None if the state is in DATA_DIR.

    Raises:
        ConfigurationError: STATE_URL is not valid, or STATE_NAME is missing.
        MissingDependencyError: The package for the URL's scheme, such as s3fs, is not installed.
    """
    if not settings.state_url:
        return None
    root = open_root(settings.state_url)
    return root / require_state_name(settings, "STATE_URL")


def require_state_name(settings: Settings, needed_with: str) -> str:
    """Return the name of the book's state, which is the same on all machines.

    Args:
        settings: Settings with the name.
        needed_with: Name of the setting that needs it, for the error message.

    Raises:
        ConfigurationError: STATE_NAME is not set.
    """
    if not settings.state_name:
        remedy = (
            "Choose a name for the book's state, and set it on each machine. The state that an "
            f"earlier version stored from this folder has the name {settings.state_dir.name}"
        )
        raise ConfigurationError("STATE_NAME", f"it is needed with {needed_with}", remedy)
    return settings.state_name
