"""Dagster only, no algorithm: assets, checks, partitions, resources, jobs and sensors."""
