"""Recorded exchanges with the real API: what it accepted is accepted, what it refused is refused.

The recordings were made by other people and are not part of the project. The expected outcome is
the API's and never our own, with four substitutions: retired models are replaced by the nearest
current ones, signatures made elsewhere are accepted unread, files uploaded by others are provided,
and a beta header that a recording omitted is added where its request needs it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentweb.emulator.api_accounts import Account
from agentweb.emulator.app import EmulatorApp, create_app
from agentweb.emulator.file_store import StoredFile
from agentweb.emulator.model_catalogue import find_model
from tests.emulator.conftest import post

FOLDER = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "api"
ENDPOINTS = ("/v1/messages", "/v1/messages/count_tokens")
#: The beta that a field needs, for recordings that do not name it.
BETAS = {
    # They have no toolset, so they are older than the beta that requires one.
    "mcp_servers": "mcp-client-2025-04-04",
    "context_management": "context-management-2025-06-27,compact-2026-01-12",
    "task_budget": "task-budgets-2026-03-13",
    "tool_addition": "mid-conversation-tool-changes-2026-07-01",
}
#: A parameter from the early days of the feature, which the API accepted for a while.
LEGACY = "output_format: Extra inputs are not permitted"
_FILE = re.compile(r"file_[A-Za-z0-9]{20,}")
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000"
    "01f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def exchanges() -> Iterator[dict[str, Any]]:
    for file in sorted(FOLDER.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def path_of(row: dict[str, Any]) -> str:
    return str(row["url"]).partition("anthropic.com")[2].partition("?")[0]


def living(name: str) -> str:
    """Return the model, or the nearest one that is still served."""
    family = next((word for word in ("haiku", "opus", "sonnet") if word in name), "haiku")
    return name if find_model(name) else f"claude-{family}-4-5"


def prepared(row: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    body = dict(row["request"])
    wanted = str(body.get("model", ""))
    # Model names that never existed are refused with the same text.
    known = wanted.startswith("claude-") and row["status"] != 404
    body["model"] = living(wanted) if known else wanted
    if body["model"] != wanted and "temperature" in body:
        # Models of that time accepted both.
        body.pop("top_p", None)
    raw = json.dumps(body)
    more = [beta for name, beta in BETAS.items() if f'"{name}"' in raw]
    headers = {
        "anthropic-version": row.get("version") or "2023-06-01",
        "anthropic-beta": ",".join(filter(None, [row.get("beta") or "", *more])),
    }
    if row["status"] == 401:
        headers["x-api-key"] = "invalid"
    return raw.encode(), {name: value for name, value in headers.items() if value}


def put_files(app: EmulatorApp, raw: bytes) -> None:
    text = raw.decode()
    kind = "application/pdf" if '"document"' in text else "image/png"
    content = b"%PDF-1.4\n1 0 obj<</Type/Page>>endobj\n%%EOF" if "pdf" in kind else PNG
    for name in set(_FILE.findall(text)):
        app.emulator.files.keep(StoredFile(
            id=name, account=Account("default", "default"), filename="a", media_type=kind,
            content=content, created=0.0,
        ))  # fmt: skip


def judged(answered: Any) -> tuple[int, str, str]:
    error = {} if answered.status == 200 else json.loads(answered.body)["error"]
    return answered.status, error.get("type", ""), error.get("message", "")


@pytest.mark.skipif(not FOLDER.exists(), reason="the recorded exchanges are not at hand")
def test_what_the_api_accepted_and_refused_is_accepted_and_refused_alike() -> None:
    app = create_app(accepts_foreign_signatures=True)
    counts: Counter[str] = Counter()
    unlike: list[str] = []

    async def play() -> None:
        for row in exchanges():
            if row["method"] != "POST" or path_of(row) not in ENDPOINTS:
                counts["elsewhere"] += 1
                continue
            raw, headers = prepared(row)
            put_files(app, raw)
            status, kind, words = judged(await post(app, raw, path=path_of(row), **headers))
            said = json.loads(row["response"])["error"] if row["status"] != 200 else {}
            wanted = (row["status"], said.get("type", ""), said.get("message", ""))
            if wanted[0] == 200 and words == LEGACY:
                counts["legacy"] += 1
            elif (status, kind, words) == wanted:
                counts["refused" if said else "accepted"] += 1
            else:
                unlike.append(f"{row['path']}#{row['n']}: {wanted} and not {(status, kind, words)}")

    asyncio.run(play())
    assert unlike == []
    # Half of the recordings are held back, so the figures are for those that are present.
    assert counts["accepted"] > 500
    assert counts["refused"] > 5
    assert counts["legacy"] <= 45
