"""The parts of the benchmark `distributed.py`, each of which breaks an ingestion by workers."""
