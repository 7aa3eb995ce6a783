"""Tests of what runs in Dagster."""
