"""The Dagster assets of the ingestion, the evaluation and the feedback of readers."""
