"""The suite of `rag-pipeline validate`: a collection is asked for what it contains."""
