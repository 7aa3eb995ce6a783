"""What a request must pass: host, origin, key, size and rate."""
