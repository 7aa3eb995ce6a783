"""The edition of a page: the source, version and language of the site that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edition:
    """The source, version and language that a page belongs to.

    A site with one docs folder, no versions and one language has only the default edition. A field
    with its default value is stored nowhere.

    Attributes:
        source: Name of the docs folder, such as `docs` or `api`, or `blog` or `pages`.
        version: Docusaurus' name of the version, such as `current` or `2.0`.
        version_label: The name of the version that the site shows, such as `Next` or `2.0.x`.
        is_latest: False if readers get another version of the source by default.
        locale: Name of the language, such as `en` or `fr`.
        is_default_locale: False if readers get another language by default.
        common_path: Path of the page in its folder, the same in all versions and languages. None if
            the source has only one of each.
    """

    source: str | None = None
    version: str | None = None
    version_label: str | None = None
    is_latest: bool = True
    locale: str | None = None
    is_default_locale: bool = True
    common_path: str | None = None


DEFAULT_EDITION = Edition()
"""The edition of all pages of a site with one docs folder, no versions and one language."""
