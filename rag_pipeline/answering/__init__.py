"""Grounding policy and answers over retrieval results."""
