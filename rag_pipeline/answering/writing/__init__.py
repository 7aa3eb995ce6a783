"""Answers that a chat model writes from the sources, and the checks of what it wrote."""
