"""What all tests share: the profiles that say how many examples Hypothesis tries.

HYPOTHESIS_PROFILE=nightly tries 10,000 of each property, other ones each night; the default tries
few, the same in each run.
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
