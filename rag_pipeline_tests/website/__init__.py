"""Tests of the textbook's Markdown files. They need no Node; `site` tests the built website."""
