"""Read the configuration, the sources and the manifest of a Docusaurus site."""
