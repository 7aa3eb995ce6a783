"""Golden set, metrics, gates and reports: uses the public retrieval API as a user would."""
