"""Types of settings with their checks and bounds, with which `fields` declares them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic_settings import NoDecode

from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.site.addresses import read_sources
from rag_pipeline.core.sources import Source

SITE_FIELDS: Final = tuple(
    field.name
    for field in fields(SiteSettings)
    if field.name not in {"component_text", "index_unlisted"}
)
"""The fields of `SiteSettings` that the site declares. Their settings have the prefix `site_`."""

OWN_DOCS_DIR: Final = Path(__file__).resolve().parents[3] / "website" / "docs"
"""The docs folder of this repository's textbook; missing if the package was installed."""

OWN_SITE: Final = SiteSettings("/physical-ai-robotics-textbook/", "docs", trailing_slash=False)
"""The site of this repository's textbook."""

OPEN: Final = "open"
"""The value of the trailing slash for a site that leaves it open."""

IS_PATH: Final = "path"
"""Marks the types of settings that are paths. A relative path is relative to the settings file."""

_T = TypeVar("_T")

BY_SITE: Final = "by_site"

BySite: TypeAlias = Annotated[_T, BY_SITE]
"""A setting that the file of a site may set.

It describes the site. It is no address of a service, no key, and no limit that protects the user.
"""


def _read_place(text: object) -> object:
    """Replace a leading `~` with the home folder in a setting that is a path or an address.

    No shell does it for a value in `.env`. A text of only white space raises ValueError.
    """
    if not isinstance(text, str):
        return text
    if text and not text.strip():
        problem = "it is blank. Name a folder or an address, or leave the setting out"
        raise ValueError(problem)
    return os.path.expanduser(text)  # noqa: PTH111  # a Path would take a slash from a URL


def _read_folder(text: object) -> object:
    """Replace a leading `~` with the home folder in a setting that is a folder.

    An empty text raises ValueError, because it would mean the current folder.
    """
    return _read_place(text or " ")


def _read_prices(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        problem = f"it is not valid JSON ({error})"
        raise ValueError(problem) from None


def _close_base_url(url: str | None) -> str | None:
    if url is None:
        return None
    if not re.match(r"^(https?://[^/\s]+)?/\S*$|^https?://[^/\s]+$", url):
        problem = "it is not a path such as /my-book/ nor an http(s) address"
        raise ValueError(problem)
    return url if url.endswith("/") else url + "/"


def _check_name(text: str) -> str:
    if not re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})?", text):
        problem = (
            "it may contain only letters, digits, dots, hyphens and underscores, at most 100, and "
            "must begin with a letter or digit"
        )
        raise ValueError(problem)
    return text


def _check_component_text(text: str) -> str:
    rules = [one.strip() for one in text.split(",") if one.strip()]
    for rule in rules:
        if not re.fullmatch(r"-?(?:\*|[A-Za-z][\w.]*)(?:\.(?:\*|[A-Za-z_][\w-]*))?", rule):
            problem = f"{rule!r} is not like Card, Card.title or -Card.tag"
            raise ValueError(problem)
    return ",".join(rules)


Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A share or a weight."""

TimeoutS: TypeAlias = Annotated[float, Field(gt=0, le=600)]
"""A timeout in seconds."""

Tokens: TypeAlias = Annotated[int, Field(ge=1, le=8000)]
"""A size of chunks in cl100k_base tokens."""

ComponentText: TypeAlias = Annotated[str, AfterValidator(_check_component_text)]
"""Exceptions for the attributes of components, separated by commas; empty without exceptions."""

Address: TypeAlias = Annotated[str, BeforeValidator(_read_place)]
"""An address of a service or a database; empty if it is not set."""

Name: TypeAlias = Annotated[str, AfterValidator(_check_name)]
"""A name that can be a part of a path on any storage; empty if it is not set."""

Place: TypeAlias = Annotated[str, BeforeValidator(_read_place), IS_PATH]
"""A folder, a file or a URL; empty if it is not set."""

Folder: TypeAlias = Annotated[Path, BeforeValidator(_read_folder), IS_PATH]
"""A folder that is always set."""

_UNSET: Final = BeforeValidator(lambda text: None if text == "" else text)

BaseUrl: TypeAlias = Annotated[str | None, _UNSET, AfterValidator(_close_base_url)]
"""A path or an http(s) address, which ends with a slash; None for the empty text."""

Route: TypeAlias = Annotated[
    str | None, _UNSET, AfterValidator(lambda path: path if path is None else path.strip("/"))
]
"""A path without slashes at its ends; None for the empty text."""

FileUnset: TypeAlias = Annotated[
    Path | None, BeforeValidator(lambda text: _read_folder(text) if text else None), IS_PATH
]
"""A file; None for the empty text."""

TrailingSlash: TypeAlias = Annotated[bool | Literal["open"] | None, _UNSET]
"""A boolean, or `OPEN`; None for the empty text."""

Format: TypeAlias = Annotated[MarkdownFormat | None, _UNSET]
"""A syntax of Markdown files; None for the empty text."""

Sources: TypeAlias = Annotated[tuple[Source, ...] | None, NoDecode, PlainValidator(read_sources)]
"""The sources of a site; a JSON list in the environment, None for the empty text."""

_Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Prices: TypeAlias = Annotated[dict[str, _Price], NoDecode, BeforeValidator(_read_prices)]
"""US dollars per million tokens, by model; a JSON object in the environment."""


class Quantization(StrEnum):
    """The vectors that a Qdrant server also keeps in memory as 8-bit integers."""

    NONE = "none"
    DENSE = "dense"
    WINDOWS = "windows"
    ALL = "all"
