"""Vector stores: embedded Qdrant Edge and the Qdrant server, each with its catalog of builds."""
