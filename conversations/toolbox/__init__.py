"""Which tools a conversation has and who may use them: approvals, MCP servers, mail accounts."""
