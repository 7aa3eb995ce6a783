"""Tests that run on every kind of store and catalog. All must behave in the same way."""
