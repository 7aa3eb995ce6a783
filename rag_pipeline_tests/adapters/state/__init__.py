"""Ledger, caches, artifacts, files and locks."""
