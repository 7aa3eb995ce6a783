"""The Dagster layer around `rag_pipeline.ingestion` and `rag_pipeline.evaluation`."""
