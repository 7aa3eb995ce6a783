"""The code location of the project, with a sensor that does not wait 30 s between two ticks."""

from rag_pipeline.definitions import build_defs

defs = build_defs(sensor_interval_s=1)
