"""An MCP server with a plan that keeps notes: `python -m tests.support.note_server PLAN`.

Without the library, whose import takes longer than what is asked of it; its own servers are those
of tests/support/mcp_servers.py.
"""

from __future__ import annotations

import json
import sys

from tests.support.hostile_mcp import GREETING, answer, said, tool


def main(plan: str) -> None:
    text = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    tools = [tool("read_plan", "Tells the plan."), tool("keep_note", "Keeps a note.", **text)]
    said_by = {"read_plan": said(plan), "keep_note": said("kept")}
    for message in map(json.loads, sys.stdin):
        match message.get("method"):
            case "initialize":
                answer(message["id"], GREETING)
            case "tools/list":
                answer(message["id"], {"tools": tools})
            case "tools/call":
                answer(message["id"], said_by[message["params"]["name"]])
            case _ if "id" in message:
                answer(message["id"], {})


if __name__ == "__main__":
    main(sys.argv[1])
