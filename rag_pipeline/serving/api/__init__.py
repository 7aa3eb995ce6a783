"""The HTTP API of the service: routes, messages, events and errors."""
