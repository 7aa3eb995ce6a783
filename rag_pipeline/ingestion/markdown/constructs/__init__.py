"""The kinds of Markdown blocks, one per file: how each is found, cleaned and shown."""
