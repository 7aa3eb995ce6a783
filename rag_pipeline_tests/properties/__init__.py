"""Properties that must be true for any input, tested with Hypothesis."""
