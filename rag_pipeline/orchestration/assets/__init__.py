"""The asset definitions."""
