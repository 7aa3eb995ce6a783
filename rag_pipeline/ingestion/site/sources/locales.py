"""The locales of a site, from `i18n` of its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.ingestion.site.config_values import get_property, take_value
from rag_pipeline.ingestion.site.sources.versions import CURRENT, DEFAULT_ID

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.site.literals import Literal, ObjectLiteral
    from rag_pipeline.ingestion.site.sources.plugins import ContentPlugin


@dataclass(frozen=True, slots=True)
class Locale:
    """A locale of a site.

    Attributes:
        name: Its name, such as `fr`; empty if the site has only one locale.
        folder: Folder of its translations; None if they are turned off.
        base_url: Its base URL, relative to that of the site.
        is_default: True for the default locale.
    """

    name: str
    folder: Path | None
    base_url: str = ""
    is_default: bool = True

    def find_dir(self, plugin: ContentPlugin, version: str = "") -> Path | None:
        """Return the folder of the translations of a plugin's files, whether it exists or not.

        `version` is the name of a docs version, and empty for other plugins.
        """
        if self.folder is None:
            return None
        own = "" if plugin.plugin_id == DEFAULT_ID else f"-{plugin.plugin_id}"
        folder = self.folder / f"docusaurus-plugin-content-{plugin.kind}{own}"
        if not version:
            return folder
        return folder / (CURRENT if version == CURRENT else f"version-{version}")


def list_locales(config: ObjectLiteral, site_dir: Path, guesses: list[str]) -> list[Locale]:
    """Return the locales of a site, the default one first.

    A clause is added to `guesses` for each value that is a guess.

    Raises:
        ValueError: They are not known. The message is a clause that says why.
    """

    def take(name: str, found: Literal) -> Literal:
        return take_value(name, found, guesses)

    i18n = take("i18n", config.get("i18n"))
    names = take("i18n.locales", get_property(i18n, "locales"))
    default = take("i18n.defaultLocale", get_property(i18n, "defaultLocale")) or "en"
    configs = take("i18n.localeConfigs", get_property(i18n, "localeConfigs"))
    path = take("i18n.path", get_property(i18n, "path")) or "i18n"
    listed = names if isinstance(names, list) else []
    texts = [str(name) for name in (default, *listed)]
    locales = []
    for name in dict.fromkeys(texts):
        own = get_property(configs, name)
        values = {
            key: take(f"i18n.localeConfigs.{name}.{key}", get_property(own, key))
            for key in ("path", "url", "baseUrl", "translate")
        }
        folder = site_dir / str(path) / str(values["path"] or name)
        base_url = "" if name == default else f"{name}/"
        if isinstance(values["baseUrl"], str):
            base_url = f"/{values['baseUrl'].strip('/')}/".replace("//", "/")
        if isinstance(values["url"], str):
            site_base = str(take("baseUrl", config.get("baseUrl")) or "/").strip("/")
            inner = base_url if base_url.startswith("/") else f"{site_base}/{base_url}"
            base_url = f"{values['url'].rstrip('/')}/{inner.lstrip('/')}"
        translated = None if values["translate"] is False else folder
        locales.append(Locale(name, translated, base_url, name == default))
    return locales
