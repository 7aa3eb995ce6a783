"""The question log in an SQL database: given answers and their ratings."""
