"""Tests of the adapters through the real clients."""
