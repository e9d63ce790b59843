"""An MCP server on standard input and output that burns a core at its first call and never answers.

It speaks just enough of the protocol to be approved; run as a file, without our packages.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {"name": "spin", "description": "Spins.", "inputSchema": {"type": "object"}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"name": "spinning", "version": "1"}
            version = params.get("protocolVersion", "2025-06-18")
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            while True:
                pass
    return {}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = answer(asked["method"], asked.get("params") or {})
            sys.stdout.write(
                json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
