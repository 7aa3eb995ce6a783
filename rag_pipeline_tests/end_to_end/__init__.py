"""Tests of whole ingestions and commands over small books."""
