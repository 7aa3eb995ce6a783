"""The suite of `rag-pipeline validate`, which queries a collection for its own content."""
