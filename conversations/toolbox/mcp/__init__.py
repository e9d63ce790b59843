"""MCP servers: their settings, the tools they list, and which of them are approved."""
