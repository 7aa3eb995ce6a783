"""Publish the pages of a built site as Markdown files, with `llms.txt` as their index."""
