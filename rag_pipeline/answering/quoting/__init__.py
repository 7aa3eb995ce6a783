"""Answers without a chat model: the passages of the book that answer a question."""
