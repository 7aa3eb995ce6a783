"""The `rag-pipeline` command."""

from rag_pipeline.cli.app import main

__all__ = ["main"]
