"""Whole ingestions over small books."""
