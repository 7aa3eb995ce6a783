"""Fill in the site settings that are not set, so that citations lead to the right website."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings_rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.site.docusaurus_config import ConfigValue, SiteConfig


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
    values = {
        "base_url": (config.url, config.base_url),
        "route_base_path": (config.route_base_path,),
        "trailing_slash": (config.trailing_slash,),
        "markdown_format": (config.markdown_format,),
    }
    needed = {name: values[name] for name in unset}
    if any(not value.is_certain for parts in needed.values() for value in parts):
        raise _describe_unread(config, needed)
    return settings.fill_site(config.site)


def _describe_unread(
    config: SiteConfig, needed: dict[str, tuple[ConfigValue, ...]]
) -> ConfigurationError:
    """Return the error about the values that the file does not state, with all problems."""
    unread = {
        f"SITE_{name.upper()}": [value for value in parts if not value.is_certain]
        for name, parts in needed.items()
        if any(not value.is_certain for value in parts)
    }
    problems = dict.fromkeys(value.problem for parts in unread.values() for value in parts)
    settings = " and ".join(unread)
    remedy = f"Set {settings}"
    if "SITE_BASE_URL" in unread:
        url = config.url.value or "https://example.org"
        remedy += f", for example SITE_BASE_URL={url}{config.base_url.value or '/book/'}"
    problem = f"{config.path} does not state the values literally: {'; '.join(problems)}"
    return ConfigurationError(", ".join(unread), problem, remedy)
