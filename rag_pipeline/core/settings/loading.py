"""The settings that a process runs with, from environment variables, `.env` and the defaults.

They are read once, in `definitions.py`, `cli/` or `open_retriever`, and passed on as values. No
other code reads the environment.
"""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr, ValidationError

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.env_file import check_env_file
from rag_pipeline.core.settings.rules import EmbeddingProvider
from rag_pipeline.core.settings.serving import Settings

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
