"""All settings in one class: environment variables, then `.env`, then the defaults here.

Read once, in `definitions.py`, `cli.py` or `open_retriever`, and handed on as values; nothing else
reads the environment. `.env.example` lists every field, held equal by a test.
"""

from __future__ import annotations

import json
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import hash_place
from rag_pipeline.core.models import ChunkLimits, EmbeddingText, MarkdownFormat, SiteSettings

Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class EmbeddingProvider(StrEnum):
    """Who embeds; `auto` is OpenAI where OPENAI_API_KEY is set, else the local model."""

    AUTO = "auto"
    LOCAL = "local"
    OPENAI = "openai"
    COHERE = "cohere"


class Settings(BaseSettings):
    """Every setting, with its default and its bounds."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8-sig", extra="ignore", frozen=True
    )

    docs_dir: Path = Path("website/docs")
    data_dir: Path = Path("data")
    dagster_home: str = ""
    state_url: str = ""

    site_base_url: str = "/physical-ai-robotics-textbook/"
    site_route_base_path: str = "docs"
    site_trailing_slash: bool | None = False
    site_markdown_format: MarkdownFormat = MarkdownFormat.MDX

    qdrant_url: str = ""
    qdrant_api_key: SecretStr = SecretStr("")
    qdrant_collection: str = Field(default="textbook_chunks", pattern=r"^[A-Za-z0-9_-]{1,100}$")
    qdrant_timeout_s: float = Field(default=10.0, gt=0, le=600)
    store_lock_timeout_s: float = Field(default=10.0, ge=0, le=600)

    embedding_provider: EmbeddingProvider = EmbeddingProvider.AUTO
    embedding_model: str = ""
    embedding_dim: int = Field(default=0, ge=0, le=65_536)
    embedding_text: EmbeddingText = EmbeddingText.HEADING_PATH
    embedding_batch_size: int = Field(default=100, ge=1, le=2048)
    embedding_timeout_s: float = Field(default=30.0, gt=0, le=600)
    openai_api_key: SecretStr = SecretStr("")
    openai_base_url: str = ""
    cohere_api_key: SecretStr = SecretStr("")
    cohere_base_url: str = ""

    embedding_prices: Annotated[dict[str, Price], NoDecode] = Field(
        default={
            "text-embedding-3-small": 0.02,
            "text-embedding-3-large": 0.13,
            "text-embedding-ada-002": 0.10,
            "embed-english-v3.0": 0.10,
        }
    )
    ingest_run_docs: int = Field(default=1000, ge=1, le=100_000)
    ingest_lock_timeout_s: float = Field(default=60.0, ge=0, le=86_400)

    answer_model: str = ""
    answer_timeout_s: float = Field(default=30.0, gt=0, le=600)
    answer_max_tokens: int = Field(default=800, ge=16, le=32_000)

    chunk_min_tokens: int = Field(default=200, ge=1, le=8000)
    chunk_target_tokens: int = Field(default=500, ge=1, le=8000)
    chunk_max_tokens: int = Field(default=800, ge=1, le=8000)
    chunk_overlap_tokens: int = Field(default=50, ge=0, le=8000)

    evaluation_test_set: str = ""

    dedup_threshold: float = Field(default=0.95, gt=0, le=1)
    semantic_weight: float = Field(default=0.6, ge=0, le=1)
    window_weight: float = Field(default=0.7, ge=0, le=1)
    document_weight: float = Field(default=0.2, ge=0, le=1)
    selected_text_threshold: float = Field(default=0.38, ge=0, le=1)
    store_idle_s: float = Field(default=2.0, ge=0, le=3600)
    log_questions: bool = False

    @field_validator(
        *("docs_dir", "data_dir", "dagster_home", "state_url", "evaluation_test_set", "qdrant_url"),
        mode="before",
    )
    @classmethod
    def _read_place(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a blank, which would be the current folder or one of that name; expand `~`, which
        no shell does in `.env`.
        """
        if not isinstance(value, str):
            return value
        is_unset = value == cls.model_fields[info.field_name or ""].default
        if not is_unset and not value.strip():
            problem = "is blank"
            raise ValueError(problem)
        return os.path.expanduser(value)  # noqa: PTH111  # a Path would take a slash from a URL

    @field_validator("embedding_prices", mode="before")
    @classmethod
    def _read_prices(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("site_trailing_slash", mode="before")
    @classmethod
    def _read_empty_as_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("site_base_url")
    @classmethod
    def _close_base_url(cls, value: str) -> str:
        if not re.match(r"^(https?://[^/\s]+)?/\S*$|^https?://[^/\s]+$", value):
            problem = "must be a path such as /my-book/ or an http(s) address"
            raise ValueError(problem)
        return value if value.endswith("/") else value + "/"

    @field_validator("site_route_base_path")
    @classmethod
    def _strip_route(cls, value: str) -> str:
        return value.strip("/")

    @model_validator(mode="after")
    def _check_chunk_sizes(self) -> Self:
        if not self.chunk_min_tokens <= self.chunk_target_tokens <= self.chunk_max_tokens:
            problem = "CHUNK_MIN_TOKENS <= CHUNK_TARGET_TOKENS <= CHUNK_MAX_TOKENS does not hold"
            raise ValueError(problem)
        if self.chunk_overlap_tokens >= self.chunk_min_tokens:
            problem = "CHUNK_OVERLAP_TOKENS must be smaller than CHUNK_MIN_TOKENS"
            raise ValueError(problem)
        return self

    @property
    def site(self) -> SiteSettings:
        """How the built site forms its paths."""
        return SiteSettings(
            self.site_base_url,
            self.site_route_base_path,
            self.site_trailing_slash,
            self.site_markdown_format,
        )

    @property
    def chunk_limits(self) -> ChunkLimits:
        """Sizes of chunks, and what of their headings is embedded."""
        return ChunkLimits(
            self.chunk_min_tokens,
            self.chunk_target_tokens,
            self.chunk_max_tokens,
            self.chunk_overlap_tokens,
            self.embedding_text,
        )

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider with `auto` resolved."""
        if self.embedding_provider is not EmbeddingProvider.AUTO:
            return self.embedding_provider
        return (
            EmbeddingProvider.OPENAI
            if self.openai_api_key.get_secret_value()
            else EmbeddingProvider.LOCAL
        )

    @property
    def state_dir(self) -> Path:
        """Where this docs folder's state lies: a folder of its own below DATA_DIR, so that two
        books cannot mix.

        Its name is made of the docs folder's name and a hash of its path relative to DATA_DIR (a
        moved checkout keeps its state). Where the docs folder is not on this machine and DATA_DIR
        holds one book, it is that one.
        """
        docs_dir, data_dir = self.docs_dir.resolve(), self.data_dir.resolve()
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", docs_dir.name) or "docs"
        own = data_dir / f"{name}-{hash_place(docs_dir, data_dir)}"
        if not own.exists() and not docs_dir.exists():
            others = [path for path in data_dir.glob("*-????????") if path.is_dir()]
            if len(others) == 1:
                return others[0]
        return own


def load_settings(**overrides: Any) -> Settings:  # noqa: ANN401  # field values of many types; pydantic checks each
    """Read the settings, given values first.

    Raises:
        ConfigurationError: A value is out of its bounds; the message names the variable, never a
            secret. Or `.env` cannot be decoded.
    """
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]).upper() if first["loc"] else "CHUNK_*_TOKENS"
        problem = first["msg"].removeprefix("Value error, ")
        mend = "See .env.example for its meaning and bounds"
        raise ConfigurationError(name, problem, mend) from None
    except UnicodeDecodeError:
        raise ConfigurationError(".env", "it is not UTF-8", "Save it in that encoding") from None
