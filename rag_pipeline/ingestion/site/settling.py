"""Fill in the site settings that are not set, so that citations lead to the right website."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.ingestion.site.config_values import Origin
from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.site.config_values import ConfigValue
    from rag_pipeline.ingestion.site.detection import DetectedSite
    from rag_pipeline.ingestion.site.docusaurus_config import SiteConfig


def settle_site(settings: Settings) -> Settings:
    """Return the settings with a value for each site setting.

    A setting that is set keeps its value. For the textbook of this repository the others are known.
    For another docs folder they are read from its `docusaurus.config`. If there is no such file,
    SITE_BASE_URL must be set, and the others get Docusaurus's defaults. The settings are returned
    unchanged if the docs folder is missing.

    Raises:
        ConfigurationError: A value is not set, and the file does not state it literally.
        MissingDependencyError: The parser is not installed.
    """
    unset = settings.unset_site_fields
    if not unset or not settings.docs_dir.is_dir():
        return settings
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        return settings.fill_site(OWN_SITE)
    path = find_config(settings.docs_dir)
    if path is None:
        if "base_url" not in unset:
            return settings
        raise ConfigurationError(
            "SITE_BASE_URL",
            f"it is not set, and no docusaurus.config file near {settings.docs_dir} says where the "
            "pages are published",
            "Set it to the address of the site, such as https://example.org/book/. Set "
            "SITE_ROUTE_BASE_PATH too if it is not `docs`, and SITE_TRAILING_SLASH if the site "
            "sets it",
        )
    config = read_config(path, settings.docs_dir)
    remedy = "Run `rag-pipeline init --run-config` if you trust the site's code, or set"
    return _fill_from(settings, config, {one for one in Origin if one.is_certain}, remedy)


def settle_detected_site(settings: Settings, site: DetectedSite) -> Settings:
    """Return the settings with the sources and a value for each site setting of a detected site.

    A setting that is set keeps its value. A guess counts as a value.

    Raises:
        ConfigurationError: A value is not set, and unknown.
    """
    if settings.sources is None and (site.sources or site.is_complete):
        settings = settings.model_copy(update={"sources": site.sources})
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        return settings.fill_site(OWN_SITE)
    return _fill_from(settings, site.config, set(Origin) - {Origin.UNKNOWN}, "Set")


def _fill_from(
    settings: Settings, config: SiteConfig, accepted: set[Origin], remedy: str
) -> Settings:
    """Return the settings with the unset ones from a configuration.

    Raises:
        ConfigurationError: A value that is needed has an origin that is not accepted.
    """
    unread = {}
    for name in settings.unset_site_fields:
        values = [value for value in config.by_field[name] if value.origin not in accepted]
        if values:
            unread[f"SITE_{name.upper()}"] = values
    if unread:
        raise _describe_unread(config, unread, remedy)
    return settings.fill_site(config.site)


def _describe_unread(
    config: SiteConfig, unread: dict[str, list[ConfigValue]], remedy: str
) -> ConfigurationError:
    """Return the error about the values that the file does not state, with all problems."""
    problems = dict.fromkeys(value.problem for parts in unread.values() for value in parts)
    settings = " and ".join(unread)
    remedy += f" {settings}"
    if "SITE_BASE_URL" in unread:
        url = config.url.value or "https://example.org"
        remedy += f", for example SITE_BASE_URL={url}{config.base_url.value or '/book/'}"
    problem = f"{config.path} does not state the values literally: {'; '.join(problems)}"
    return ConfigurationError(", ".join(unread), problem, remedy)
