"""The files `rag-pipeline.toml` and `.env`, which have values of settings."""

from __future__ import annotations

import difflib
import io
import logging
import os
import stat
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dotenv.parser import parse_stream
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, TomlConfigSettingsSource

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.rules import BY_SITE, IS_PATH
from rag_pipeline.core.site.addresses import place_entries
from rag_pipeline.core.site.files import find_root, is_inside, read_site_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from importlib.resources.abc import Traversable

    from pydantic.fields import FieldInfo


SETTINGS_FILE: Final = "rag-pipeline.toml"

_logger = logging.getLogger(__name__)


class SettingsFile(TomlConfigSettingsSource):
    """The settings in one `rag-pipeline.toml`. Its keys are names of settings in lower case.

    The file belongs to a site, whose authors are not the user. It may only describe the site.

    Args:
        settings_cls: The class of the settings.
        path: The file.
        docs_dir: The docs folder that the user named, which may be outside the root of the site.

    Raises:
        ConfigurationError: The file cannot be read, is not valid TOML, or has an unknown key or one
            that only the user may set.
    """

    def __init__(
        self, settings_cls: type[BaseSettings], path: Path, docs_dir: Path | None = None
    ) -> None:
        self.path = path
        self._docs_dir = docs_dir
        try:
            super().__init__(settings_cls, path)
        except OSError as error:
            problem = f"it cannot be read ({error.strerror})"
            raise ConfigurationError(str(path), problem, "Check its permissions") from error
        except UnicodeDecodeError as error:
            problem = "the file is not encoded in UTF-8"
            raise ConfigurationError(str(path), problem, "Save it as UTF-8") from error
        except tomllib.TOMLDecodeError as error:
            problem = f"it is not valid TOML: {str(error)[:1].lower()}{str(error)[1:]}"
            remedy = "Correct the line. A text needs quotation marks"
            raise ConfigurationError(str(path), problem, remedy) from error
        for name in self.toml_data:
            if name not in settings_cls.model_fields:
                raise self._describe_unknown(name)
            if not may_set(settings_cls.model_fields[name]):
                problem = f"it sets `{name}`, which a file of a site may not set"
                remedy = f"Delete the line. Set {name.upper()} in the environment or your own .env"
                raise ConfigurationError(str(path), problem, remedy)

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        """Read the file. The class above calls this."""
        del file_path
        content = read_site_file(self.path, find_root(self.path.parent))
        return tomllib.loads(content.decode("utf-8").replace("\r\n", "\n"))

    def __call__(self) -> dict[str, Any]:
        """Return the values by field name. Relative paths are joined to the folder of the file.

        Raises:
            ConfigurationError: A path leads out of the root of the site.
        """
        values = dict(super().__call__())
        if "sources" in values:
            values["sources"] = place_entries(values["sources"], self.path.parent)
            for entry in values["sources"] if isinstance(values["sources"], list) else ():
                for name in ("folder", "fallback"):
                    if isinstance(entry, dict) and isinstance(entry.get(name), str):
                        self._check_inside(f"sources.{name}", entry[name])
        for name, value in values.items():
            is_path = IS_PATH in self.settings_cls.model_fields[name].metadata
            if is_path and isinstance(value, str) and value.strip():
                values[name] = str(self.path.parent / os.path.expanduser(value))  # noqa: PTH111  # never fails
                self._check_inside(name, values[name])
        return values

    def _check_inside(self, name: str, place: str) -> None:
        root = find_root(self.path.parent)
        is_named = self._docs_dir is not None and is_inside(Path(place), self._docs_dir)
        if not is_named and not is_inside(Path(place), root):
            problem = f"`{name}` is {place}, which is outside {root}"
            remedy = "Name a place inside the site, or set it in the environment or your own .env"
            raise ConfigurationError(str(self.path), problem, remedy)

    def _describe_unknown(self, name: str) -> ConfigurationError:
        near = difflib.get_close_matches(name.lower(), self.settings_cls.model_fields, n=1)
        remedy = f"Did you mean `{near[0]}`?" if near else "Delete it"
        remedy += " The keys are the names of settings in lower case, without tables"
        return ConfigurationError(str(self.path), f"`{name}` is not a setting", remedy)


class SetValues(PydanticBaseSettingsSource):
    """The values of a source, except empty texts of settings that are empty if they are not set.

    Such a text, as in a copy of `.env.example`, does not hide a value of a later source.
    """

    def __init__(self, source: PydanticBaseSettingsSource) -> None:
        super().__init__(source.settings_cls)
        self._source = source

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of one field, as the source has it."""
        return self._source.get_field_value(field, field_name)

    def __call__(self) -> dict[str, Any]:
        """Return the values by field name."""
        fields = self.settings_cls.model_fields
        unset = {name for name, field in fields.items() if field.default is None}
        values = self._source().items()
        return {name: value for name, value in values if value != "" or name not in unset}


def may_set(field: FieldInfo) -> bool:
    """Return True if the file of a site may set a setting."""
    return BY_SITE in field.metadata


def is_own_file(path: Path) -> bool:
    """Return True if a settings file exists, and only this user or the administrator writes it.

    A warning names a file that exists and is not trusted.
    """
    try:
        status = os.stat(path)  # noqa: PTH116  # Path.stat is slower; many folders are tried
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    if os.name != "posix":
        return True
    problem = ""
    if status.st_uid not in {0, os.geteuid()}:
        problem = "another user owns it. Copy it, or change its owner"
    elif status.st_mode & stat.S_IWOTH:
        problem = "everybody may write it. Run `chmod o-w` on it"
    if problem:
        warn_once(f"{path} is not read, because {problem}")
    return not problem


@cache
def warn_once(message: str) -> None:
    """Log a warning, unless this process has already logged the same message."""
    _logger.warning("rag-pipeline: warning: %s", message)


def find_settings_file(settings_cls: type[BaseSettings], docs_dir: object) -> SettingsFile | None:
    """Return the settings file of a docs folder; None if the site has no such file.

    If no docs folder is named, it is the file in the working directory. Otherwise it is the nearest
    file of a site that the docs folder may belong to. A file that names another docs folder is
    skipped, and so is a file beside the docs folder that names none or is invalid: it may belong to
    something else. A file that another user owns or that everybody may write is not read.

    Args:
        settings_cls: The class of the settings.
        docs_dir: The docs folder that an argument or the environment names; None if none does.

    Raises:
        ConfigurationError: The file in the working directory, or one above the docs folder, is
            invalid.
    """
    if not isinstance(docs_dir, str | Path) or not str(docs_dir).strip():
        here = Path(SETTINGS_FILE)
        return SettingsFile(settings_cls, here) if is_own_file(here) else None
    docs = Path(os.path.expanduser(docs_dir))  # noqa: PTH111  # as in `rules`; never fails
    for folder in list_site_folders(docs):
        path = folder / SETTINGS_FILE
        if is_own_file(path):
            above = folder in docs.absolute().parents or folder in docs.resolve().parents
            try:
                found = SettingsFile(settings_cls, path, docs)
                named = found().get("docs_dir")
            except ConfigurationError:
                if above:
                    raise
                continue
            names_none = above and not isinstance(named, str)
            if names_none or Path(str(named)).resolve() == docs.resolve():
                return found
    return None


def list_site_folders(docs_dir: Path) -> Iterator[Path]:
    """Yield the folders that may contain the site of a docs folder, the most likely first.

    These are the folders above the docs folder, the nearest first, then the folders beside it,
    because a site may lie in `website/` next to `docs/`.
    """
    given, real = docs_dir.absolute(), docs_dir.resolve()
    yield from dict.fromkeys((*given.parents, *real.parents))
    with suppress(OSError):  # the folder above is not accessible
        yield from sorted(path for path in real.parent.glob("*/") if path != real)


_ENV: Final = ".env"
_LIKENESS: Final = 0.8  # of 1; the file may also contain settings of other programs


def check_env_file(known: Collection[str]) -> bool:
    """Check the lines of `.env` in the current folder. A missing file is valid.

    A name that is almost the name of a setting is a warning. Other unknown names are ignored,
    because the file may be shared with other programs.

    Args:
        known: Names of all settings, in upper case.

    Returns:
        True if the settings may be read from the file. A file that another user owns or that
        everybody may write is not read.

    Raises:
        ConfigurationError: A line is neither a comment nor `NAME=value`. The message names the line
            but does not show it, because it may contain a secret.
        UnicodeDecodeError: The file is not encoded in UTF-8.
    """
    path = Path(_ENV)
    if not is_own_file(path):
        return False
    for line in parse_stream(io.StringIO(path.read_text(encoding="utf-8-sig"))):
        # The parser counts blank lines before an entry as a part of it.
        text = line.original.string
        number = line.original.line + text[: len(text) - len(text.lstrip())].count("\n")
        if line.error or (line.key is not None and line.value is None):
            problem = f"line {number} cannot be read"
            raise ConfigurationError(_ENV, problem, "Write NAME=value, or # before a comment")
        name = (line.key or "").upper()
        if name and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
            if near:
                warn_once(
                    f"{_ENV}: line {number}: {line.key} is not a setting. Did you mean {near[0]}?"
                )
    return True
