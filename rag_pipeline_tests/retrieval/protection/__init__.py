"""Time limits, circuit breakers and log lines."""
