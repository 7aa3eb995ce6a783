"""The file `rag-pipeline.toml`, which contains settings for one docs folder."""

from __future__ import annotations

import difflib
import os
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_settings import PydanticBaseSettingsSource, TomlConfigSettingsSource

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.rules import IS_PATH
from rag_pipeline.core.site.source_entries import place_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

SETTINGS_FILE: Final = "rag-pipeline.toml"


class SettingsFile(TomlConfigSettingsSource):
    """The settings in one `rag-pipeline.toml`. Its keys are names of settings in lower case.

    Raises:
        ConfigurationError: The file cannot be read, is not valid TOML or has an unknown key.
    """

    def __init__(self, settings_cls: type[BaseSettings], path: Path) -> None:
        self.path = path
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

    def __call__(self) -> dict[str, Any]:
        """Return the values by field name. Relative paths are joined to the folder of the file."""
        values = dict(super().__call__())
        if "sources" in values:
            values["sources"] = place_entries(values["sources"], self.path.parent)
        for name, value in values.items():
            is_path = IS_PATH in self.settings_cls.model_fields[name].metadata
            if is_path and isinstance(value, str) and value.strip() and "://" not in value:
                place = os.path.expanduser(value)  # noqa: PTH111  # the value may be an address
                values[name] = str(self.path.parent / place)
        return values

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


def find_settings_file(settings_cls: type[BaseSettings], docs_dir: object) -> SettingsFile | None:
    """Return the settings file of a docs folder; None if the site has no such file.

    If no docs folder is named, it is the file in the working directory. Otherwise it is the nearest
    file of a site that the docs folder may belong to. A file that names another docs folder is
    skipped, and so is a file beside the docs folder that names none or is invalid: it may belong to
    something else.

    Args:
        settings_cls: The class of the settings.
        docs_dir: The docs folder that an argument or the environment names; None if none does.

    Raises:
        ConfigurationError: The file in the working directory, or one above the docs folder, is
            invalid.
    """
    if not isinstance(docs_dir, str | Path) or not str(docs_dir).strip():
        here = Path(SETTINGS_FILE)
        return SettingsFile(settings_cls, here) if here.is_file() else None
    docs = Path(os.path.expanduser(docs_dir))  # noqa: PTH111  # as in `rules`; never fails
    for folder in list_site_folders(docs):
        path = folder / SETTINGS_FILE
        if os.path.isfile(path):  # noqa: PTH113  # Path.is_file fails in a folder that is not accessible
            above = folder in docs.absolute().parents or folder in docs.resolve().parents
            try:
                found = SettingsFile(settings_cls, path)
            except ConfigurationError:
                if above:
                    raise
                continue
            named = found().get("docs_dir")
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
