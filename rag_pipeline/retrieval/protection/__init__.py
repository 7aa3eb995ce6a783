"""Time limits, circuit breakers and log lines around every search and answer."""
