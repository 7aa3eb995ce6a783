"""Evaluation of retrieval: golden set, metrics, quality gates, reports and parameter sweeps."""
