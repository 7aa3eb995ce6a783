"""Stores and catalogs."""
