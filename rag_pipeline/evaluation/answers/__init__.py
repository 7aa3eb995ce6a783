"""Evaluation of answers: ask the golden set, and score the texts that a reader sees."""
