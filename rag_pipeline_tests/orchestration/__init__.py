"""Tests of the Dagster assets, checks, jobs, sensor and instance."""
