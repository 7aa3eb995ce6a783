"""The embedded Qdrant Edge store and the Qdrant server, each with its catalog of collections."""
