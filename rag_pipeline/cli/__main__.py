"""Run the command as `python -m rag_pipeline.cli`."""

from rag_pipeline.cli import main

main()
