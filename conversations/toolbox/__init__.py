"""The tools of a conversation and the access to them: approvals, MCP servers, mail accounts."""
