"""The declaration of the settings of the service, and with them the class of all settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr

from rag_pipeline.core.settings import rules
from rag_pipeline.core.settings.fields import LibrarySettings
from rag_pipeline.core.settings.file import SetValues, find_settings_file

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings, PydanticBaseSettingsSource


class Settings(LibrarySettings):
    """The settings of a process. A field has the name of its environment variable in lower case."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # not used
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values: arguments, environment, `.env`, then `rag-pipeline.toml`.

        The file is the one of the docs folder that one of the other sources names.
        """
        sources = (init_settings, SetValues(env_settings), SetValues(dotenv_settings))
        named = (source().get("docs_dir") for source in sources)
        docs_dir = next((value for value in named if value is not None), None)
        file = find_settings_file(settings_cls, docs_dir)
        return sources if file is None else (*sources, file)

    serve_origins: str = rules.SERVING.setting(
        "",
        "The origins of other websites whose pages may call the service, separated by commas, such "
        "as `https://book.example.org`. If empty, only pages of the service itself may call it.",
    )
    serve_hosts: str = rules.SERVING.setting(
        "",
        "The host names under which the service is reached, separated by commas, such as "
        "`tutor.example.org`. Requests for other hosts are refused. This machine's own names, such "
        "as `localhost`, and the value of `--host` are always allowed.",
    )
    serve_api_key: SecretStr = rules.SERVING.setting(
        SecretStr(""),
        "The key that each request must send as `Authorization: Bearer KEY`. If empty, no key is "
        "needed. A secret: do not commit it.",
    )
    serve_client_rate: str = rules.SERVING.setting(
        "30/minute",
        "The highest rate of questions of one client, such as `30/minute` or `5/second;200/hour`. "
        "If empty, there is no limit.",
    )
    serve_total_rate: str = rules.SERVING.setting(
        "600/minute",
        "The highest rate of questions of all clients together. If empty, there is no limit.",
    )
    serve_client_answers: int = rules.SERVING.setting(
        2,
        "The number of questions of one client that are answered at the same time. Others of the "
        "client wait. Increase it if many readers share one address.",
        bounds={"ge": 1, "le": 1000},
    )
    serve_rate_url: rules.Address = rules.SERVING.setting(
        "",
        "The place where several processes count requests together, such as "
        "`redis://127.0.0.1:6379`. If empty, each process counts its own.",
    )
    serve_trusted_proxies: str = rules.SERVING.setting(
        "",
        "The addresses of reverse proxies, separated by commas, whose `X-Forwarded-For` header "
        "names the client. If empty, the header is ignored.",
    )
    question_log_url: rules.Address = rules.QUESTION_LOG.setting(
        "",
        "The database with the answers that were given and their ratings, such as "
        "`postgresql://user@host/robotutor`. If empty, an SQLite file below `DATA_DIR`.",
    )
    question_log_days: int = rules.QUESTION_LOG.setting(
        90,
        "The number of days after which entries are deleted. 0: nothing is logged.",
        bounds={"ge": 0, "le": 3650},
    )
