"""Read the configuration, the sources and the build of a Docusaurus site, and export its pages."""
