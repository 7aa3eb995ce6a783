"""Entry point of `python -m rag_pipeline.cli`, which is the `rag-pipeline` command."""

from rag_pipeline.cli import main

main()
