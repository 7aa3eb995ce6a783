"""Rules about the repository itself: boundaries, settings, documents, folders."""
