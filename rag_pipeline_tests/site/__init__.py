"""Tests of the built site against the pipeline; most need Node and run by `make test-site` alone.

`proof` holds the chunks of any Docusaurus site against its build, from the command line too.
"""
