"""What surrounds every search and answer: time limits, circuit breakers and log lines."""
