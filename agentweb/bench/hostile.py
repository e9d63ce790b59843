"""Thirty hostile tool calls at once, and what another visitor notices of them.

The same visitor's page and stored message are measured three times in one run: alone, beside thirty
people who have the model call a harmless tool, because thirty turns take their share of the
machine, and beside thirty who have it call tools with everything that was ever slow
(`hostile_script`, `hostile_files`, `spinning_server`) and with the files of a corpus of others
(`--corpus`). What the log of the web process says meanwhile of a blocked event loop is counted, and
how the calls ended.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from agentweb.bench import hostile_script
from agentweb.bench.http_client import open_client, post_form, send_request
from agentweb.bench.processes import ROOT
from agentweb.bench.readers import compute_quantiles
from agentweb.bench.site_under_test import EMBEDDED, Site, run_emulator, run_site
from agentweb.bench.streaming import RATE

#: Hostile calls at once, each of a person of their own.
CALLS = 30
#: Requests a second for the page, and for a message.
PAGES, MESSAGES = 4.0, 2.0
#: Milliseconds that the visitor may notice at the 99th percentile.
MOST_LATE = 200.0
HARMLESS = "What time is it in Tokyo?"
BLOCKED = "the event loop has been busy"
_Row = dict[str, Any]


def measure(seconds: float, corpus: Path | None, report: Callable[[str], None]) -> _Row:
    """Measure both in turn; returns milliseconds."""
    script = Path(hostile_script.__file__)
    with ExitStack() as stack:
        port = stack.enter_context(_serve_text())
        api = stack.enter_context(run_emulator(RATE, script))
        tested = stack.enter_context(
            run_site(
                EMBEDDED,
                api,
                AGENTWEB_MCP_COMMANDS="true",
                AGENTWEB_FETCH_PRIVATE_HOSTS=f"127.0.0.1:{port}",
            )
        )
        visitors, attackers = tested.people(8), tested.people(CALLS)
        names = _fill_workspaces(tested, corpus)
        asks = [f"hostile {name}" for name in hostile_script.CALLS]
        asks.append(f"hostile matching http://127.0.0.1:{port}/long.txt")
        asks = [f"read {name}" for name in names] + asks
        chats = [chat | {"text": asks[at % len(asks)]} for at, chat in enumerate(attackers)]
        plain = [chat | {"text": HARMLESS} for chat in tested.people(CALLS)]
        asyncio.run(_visit(tested, visitors, plain[:1], 5.0))
        before = len(tested.parts["web"].read_output())
        found = {
            "alone": asyncio.run(_visit(tested, visitors, [], seconds)),
            "harmless": asyncio.run(_visit(tested, visitors, plain, seconds)),
            "beside": asyncio.run(_visit(tested, visitors, chats, seconds)),
        }
        log = tested.parts["web"].read_output()[before:]
        outcomes = _count_outcomes(tested)
    row = {"calls": CALLS, "corpus": len(names), "seconds": seconds} | found
    row |= {"blocks": log.count(BLOCKED), "outcomes": outcomes}
    row = judge(row)
    report(format_line(row))
    return row


def judge(row: _Row) -> _Row:
    """Add how much later a visitor is at the 99th percentile, and whether that is little."""
    late = {
        f"{what}_late": round(row["beside"][what]["p99"] - row["alone"][what]["p99"], 1)
        for what in ("page", "ack")
    }
    return row | late | {"is_within": max(late.values()) <= MOST_LATE}


class _LongText(BaseHTTPRequestHandler):
    """Answers every request with the text that is then searched."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(hostile_script.FETCHED)))
        self.end_headers()
        self.wfile.write(hostile_script.FETCHED.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def _serve_text() -> Iterator[int]:
    """Serve the long text; yield the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _LongText) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def _fill_workspaces(tested: Site, corpus: Path | None) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "agentweb.bench.hostile_files", *([str(corpus)] if corpus else [])],
        check=True, cwd=ROOT, env=tested.environment, stdout=subprocess.PIPE, timeout=600,
    )  # fmt: skip
    names: list[str] = json.loads(done.stdout)
    return names


def _count_outcomes(tested: Site) -> dict[str, int]:
    """Count the tool calls that were made, by tool and state."""
    done = subprocess.run(
        [sys.executable, "-m", "agentweb.bench.call_outcomes"],
        check=True, cwd=ROOT, env=tested.environment, stdout=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    found: dict[str, int] = json.loads(done.stdout)
    return found


async def _visit(tested: Site, visitors: list[_Row], hostile: list[_Row], seconds: float) -> _Row:
    """Ask for pages and send messages at fixed rates, beside the hostile calls if there are any."""
    async with open_client(120) as client:
        for status in await asyncio.gather(*(_send(client, tested, chat) for chat in hostile)):
            if status != 200:
                raise ConnectionError(f"a hostile message was answered with HTTP {status}")
        began = time.time() + 0.1
        pages = [
            _measure_at(began + at / PAGES, _open(client, tested, visitors[at % 4]))
            for at in range(round(seconds * PAGES))
        ]
        messages = [
            _measure_at(
                began + at / MESSAGES,
                _send(client, tested, visitors[4 + at % 4] | {"text": "Answer in 10 words"}),
            )
            for at in range(round(seconds * MESSAGES))
        ]
        times = await asyncio.gather(*pages, *messages)
    page, ack = times[: len(pages)], times[len(pages) :]
    return {"page": compute_quantiles(page), "ack": compute_quantiles(ack)}


async def _measure_at(due: float, work: Any) -> float:
    """Return the milliseconds since the work was due."""
    await asyncio.sleep(max(0.0, due - time.time()))
    status = await work
    if status != 200:
        raise ConnectionError(f"the visitor was answered with HTTP {status}")
    return (time.time() - due) * 1e3


async def _open(client: ClientSession, tested: Site, chat: _Row) -> int:
    cookie = {"Cookie": f"sessionid={chat['session']}"}
    return (await send_request(client, "GET", f"{tested.url}/c/{chat['chat']}/", cookie)).status


async def _send(client: ClientSession, tested: Site, chat: _Row) -> int:
    address = f"{tested.url}/c/{chat['chat']}/send/"
    return await post_form(client, address, chat["session"], text=chat["text"])


def format_line(row: _Row) -> str:
    parts = [
        f"{what} p99 {row['alone'][what]['p99']:,.0f} ms alone,"
        f" {row['harmless'][what]['p99']:,.0f} beside {row['calls']} harmless calls,"
        f" {row['beside'][what]['p99']:,.0f} beside hostile ones ({row[f'{what}_late']:+,.0f})"
        for what in ("page", "ack")
    ]
    verdict = "within" if row["is_within"] else "above"
    return (
        f"{'; '.join(parts)}: {verdict} the bound of {MOST_LATE:g} ms;"
        f" {row['blocks']} blocks of the event loop"
    )
