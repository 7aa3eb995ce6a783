"""Hypothesis profiles for all tests, chosen with the environment variable HYPOTHESIS_PROFILE.

The default profile tries the same 60 examples of each property in every run. The profile `nightly`
tries 10,000 examples of each property, different ones in every run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_INPUT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=_SLOW_INPUT,
)
settings.register_profile(
    "nightly", max_examples=10_000, deadline=None, suppress_health_check=_SLOW_INPUT
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
