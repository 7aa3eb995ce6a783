"""Tests of time limits, circuit breakers and log lines."""
