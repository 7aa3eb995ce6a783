"""Tests of the validation suite."""
