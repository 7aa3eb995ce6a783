"""Attacks on the program by the authors of sites, and by clients of the service."""
