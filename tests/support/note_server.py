"""An MCP server with a plan that keeps notes: `python -m tests.support.note_server PLAN`."""

from __future__ import annotations

import sys


def main(plan: str) -> None:
    from mcp.server.mcpserver import MCPServer

    mcp = MCPServer("notes")

    @mcp.tool()
    def read_plan() -> str:
        """Tells the plan."""
        return plan

    @mcp.tool()
    def keep_note(text: str) -> str:
        """Keeps a note."""
        return "kept"

    mcp.run("stdio")


if __name__ == "__main__":
    main(sys.argv[1])
