"""Ingestion by several workers: the coordinator plans buckets, and each worker indexes some."""
