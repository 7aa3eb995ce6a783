"""Protocols of the models, services and stores that the package uses. Adapters implement them."""
