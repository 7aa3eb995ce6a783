"""Adapters: the only code that talks to models, services and stores.

Each adapter implements a protocol of `core.protocols`.
"""
