"""The settings that a process runs with, from environment variables, `.env` and the defaults."""

from rag_pipeline.core.settings.env_file import EmbeddingProvider, Settings, load_settings

__all__ = ["EmbeddingProvider", "Settings", "load_settings"]
