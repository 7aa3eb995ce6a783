"""The retrieval library."""
