"""Ingestion: turn the Markdown files of a docs folder into the points of a vector collection.

Parsing, chunking and planning are pure functions. All other modules use services such as the
embedder, the store and the ledger only through the Protocols in `core.protocols`.
"""
