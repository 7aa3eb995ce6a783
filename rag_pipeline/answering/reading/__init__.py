"""Reading of the question before anything is searched: its kind, its language, and small talk."""
