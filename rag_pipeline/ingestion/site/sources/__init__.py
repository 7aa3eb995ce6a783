"""The sources of a Docusaurus site, from the plugins, versions and locales of its configuration."""
