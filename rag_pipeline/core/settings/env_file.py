"""Read the environment and the file `.env`, and report faults that would otherwise be ignored."""

from __future__ import annotations

import difflib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dotenv.parser import parse_stream
from pydantic import SecretStr, ValidationError

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.fields import EmbeddingProvider, Settings
from rag_pipeline.core.settings.file import is_own_file, warn_once

if TYPE_CHECKING:
    from collections.abc import Collection


_NAME: Final = ".env"
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
    path = Path(_NAME)
    if not is_own_file(path):
        return False
    for line in parse_stream(io.StringIO(path.read_text(encoding="utf-8-sig"))):
        # The parser counts blank lines before an entry as a part of it.
        text = line.original.string
        number = line.original.line + text[: len(text) - len(text.lstrip())].count("\n")
        if line.error or (line.key is not None and line.value is None):
            problem = f"line {number} cannot be read"
            raise ConfigurationError(_NAME, problem, "Write NAME=value, or # before a comment")
        name = (line.key or "").upper()
        if name and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
            if near:
                warn_once(
                    f"{_NAME}: line {number}: {line.key} is not a setting. Did you mean {near[0]}?"
                )
    return True


__all__ = ["EmbeddingProvider", "Settings", "load_settings"]


def load_settings(**overrides: Any) -> Settings:  # noqa: ANN401  # field values of many types; pydantic checks each
    """Read the settings from the arguments, then the environment, then `.env`, then the defaults.

    Args:
        **overrides: Values by field name. A value of None counts as not given.

    Raises:
        ConfigurationError: A value has a wrong type or is out of its bounds (the message names the
            setting and never contains a secret), or `.env` is not encoded in UTF-8 or has a line
            that cannot be read.
    """
    try:
        given = {name: value for name, value in overrides.items() if value is not None}
        if not check_env_file({name.upper() for name in Settings.model_fields}):
            given.setdefault("_env_file", "")
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "CHUNK_*_TOKENS"
        problem = first["msg"].removeprefix("Value error, ").rstrip(".")
        field = Settings.model_fields.get(name)  # None for a rule about several settings
        is_shown = field is not None and field.annotation != SecretStr
        if is_shown and first["type"] != "value_error":
            problem = f"{first['input']!r:.40} is not valid: {problem[0].lower()}{problem[1:]}"
        remedy = "See .env.example for its meaning and the allowed values"
        raise ConfigurationError(name.upper(), problem, remedy) from None
    except UnicodeDecodeError:
        raise ConfigurationError(
            ".env", "the file is not encoded in UTF-8", "Save it as UTF-8"
        ) from None
