"""Tests that compare citations with the built website. Most need Node; run `make test-site`.

The module `proof` compares the chunks of any Docusaurus site with its build, also as a command.
"""
