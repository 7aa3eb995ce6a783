"""Tests of the Markdown parser and cleaner."""
