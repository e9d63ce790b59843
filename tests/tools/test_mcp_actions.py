"""Which tools of MCP servers leave a trace in the record of actions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools.mcp.offer import Approved, make_tool
from tools.mcp.pool import Pool


@pytest.mark.parametrize(
    ("effect", "annotations", "action"),
    [
        ("write", None, None),
        ("write", {"readOnlyHint": True}, ""),
        ("write", {"readOnlyHint": False, "destructiveHint": True}, None),
        ("keyed", {"idempotentHint": True}, None),
        ("read", None, ""),
        ("write", "odd", None),
    ],
)
def test_a_tool_that_only_reads_leaves_nothing(effect: Any, annotations: Any, action: Any) -> None:
    definition = {"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations}
    approved = Approved("s", "t", "mcp__s__t", json.dumps(definition), "d", effect, False, 9.0)
    assert make_tool(approved, Pool(), lambda _data: "").action == action
