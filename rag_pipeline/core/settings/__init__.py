"""The settings that a process runs with, from environment variables, `.env` and the defaults."""

from rag_pipeline.core.settings.fields import EmbeddingProvider, Settings, load_settings

__all__ = ["EmbeddingProvider", "Settings", "load_settings"]
