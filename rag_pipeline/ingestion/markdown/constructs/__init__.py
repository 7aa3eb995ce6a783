"""The kinds of Markdown blocks, one per module: how each is found, cleaned and listed."""
