"""The Dagster assets: five of the ingestion and one of the evaluation."""
