"""The MCP server: tools and resources for coding agents."""
