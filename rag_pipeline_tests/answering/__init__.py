"""Tests of grounding, citations and answers."""
