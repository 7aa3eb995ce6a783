"""The rules of a Docusaurus site: file names, pages, addresses and links."""
