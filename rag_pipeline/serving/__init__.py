"""RoboTutor, the service: answers over HTTP and MCP."""
