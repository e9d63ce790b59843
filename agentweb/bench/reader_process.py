"""The readers of a load test, in a separate process: they only count and take times.

It reads a job as one JSON line, prints a line when everything is connected, starts when it reads
another line, and prints the result. Each delta carries the time at which it was written; latency is
the time since then, on the same clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import ClientError, ClientSession

from agentweb.bench.http_client import open_client, post_form
from agentweb.bench.readers import Reader, compute_quantiles
from agentweb.bench.rivals.rival_pages import Page, make_page
from agentweb.bench.shown_and_stored import compare_pages, compare_tabs, count_unequal
from agentweb.bench.tabs import Tab

#: Tabs that are opened concurrently before a measurement begins.
_AT_ONCE = 32
#: What the last frame of a turn contains.
_ENDED = 'data-state="done"'
#: Seconds that a tab may take until it shows something, and between two polls of all tabs.
_OPENING, _LOOK = 90.0, 0.1

Job = dict[str, Any]
#: Keeps references to the tasks of tabs and streams, for as long as the process lives.
_following: list[asyncio.Task[None]] = []


async def measure_stream(job: Job, client: ClientSession) -> Job:
    """Send a prompt in every conversation, spread over the ramp, and read all answers."""
    readers = [Reader(job["deltas"]) for _ in job["chats"]]
    pages = await _open_pages(job, client)
    tabs = [] if pages else await _open_all(job, [reader.take for reader in readers])
    await _wait_for_start(len(tabs))
    began, own = time.time(), time.process_time()
    noise = asyncio.create_task(_send_noise(job, client))
    asking = [
        asyncio.create_task(_ask(job, client, at, reader, began, pages))
        for at, reader in enumerate(readers)
    ]
    done = [asyncio.create_task(reader.is_done.wait()) for reader in readers]
    await asyncio.wait(done, timeout=job["seconds"])
    ended, own = time.time(), time.process_time() - own
    for task in (noise, *asking):
        task.cancel()
    acks = [task.result() for task in asking if task.done() and not task.cancelled()]
    senders = [reader for at, reader in enumerate(readers) if _sends_message(job, at)]
    in_time = [reader.seen for reader in readers]
    found = {
        "deltas": sum(in_time),
        "seconds": ended - began,
        "processor": own,
        "frames": sum(tab.messages for tab in tabs),
        "latency": compute_quantiles(each for reader in readers for each in reader.latencies),
        "first": compute_quantiles(
            (each.first - each.asked_at) * 1e3 for each in senders if each.first
        ),
        "ack": compute_quantiles(each for each in acks if each is not None),
        "refused": 0 if pages else sum(each is None for each in acks),
    }
    if job.get("is_compared"):
        stored = await _ask_stored(found)
        compared = (
            compare_pages(readers, job) if pages else compare_tabs(tabs, stored, job, in_time)
        )
        found |= await compared
    return found


def _sends_message(job: Job, at: int) -> bool:
    """Return whether a reader sends a prompt; the others of its conversation only read."""
    return bool(job["chats"][at].get("asks", True))


async def _ask(
    job: Job,
    client: ClientSession,
    at: int,
    reader: Reader,
    began: float,
    pages: Sequence[Page],
) -> float | None:
    """Send the prompt when this reader is due; return the milliseconds until it was stored."""
    if not _sends_message(job, at):
        return None
    wait = began + job["ramp"] * at / len(job["chats"]) - time.time()
    await asyncio.sleep(max(0.0, wait))
    reader.asked_at = time.time()
    if pages:
        _following.append(asyncio.create_task(pages[at].ask(job["text"], reader)))
        return None
    status = await _send(job, client, job["chats"][at])
    if status != 200:
        sys.stderr.write(f"a message was answered with HTTP {status}\n")
        return None
    return (time.time() - reader.asked_at) * 1e3


async def _send(job: Job, client: ClientSession, chat: Job) -> int:
    address = f"{job['url']}/c/{chat['chat']}/send/"
    return await post_form(client, address, chat["session"], text=chat.get("text") or job["text"])


async def _send_noise(job: Job, client: ClientSession) -> None:
    """Act as the neighbour who always sends more than the limits allow."""
    chats = job.get("noise", [])
    while chats:
        with contextlib.suppress(ClientError, OSError):
            await asyncio.gather(*(_send(job, client, chat) for chat in chats))
        await asyncio.sleep(0.2)


async def measure_turns(job: Job, client: ClientSession) -> Job:
    """Ask `turns` times in every conversation, in `at_once` of them at a time; wait for each end.

    A turn has ended when the page shows its last state; that of the relay or of a rival, when its
    answer has ended.
    """
    sizes: list[int] = []
    ends = [asyncio.Event() for _ in job["chats"]]

    def handle(at: int) -> Callable[[str], None]:
        def take(message: str) -> None:
            sizes.append(len(message.encode()))
            if _ENDED in message:
                ends[at].set()

        return take

    pages = await _open_pages(job, client)
    tabs = [] if pages else await _open_all(job, [handle(at) for at in range(len(ends))])
    await _wait_for_start(len(tabs))
    sizes.clear()
    gate, statuses = asyncio.Semaphore(job["at_once"]), list[int]()

    async def ask(at: int) -> None:
        async with gate:
            for _ in range(job["turns"]):
                ends[at].clear()
                if pages:
                    await _ask_whole(pages[at], job)
                    continue
                statuses.append(await _send(job, client, job["chats"][at]))
                await ends[at].wait()
                await asyncio.sleep(job["pause"])

    async with asyncio.timeout(job["seconds"]):
        await asyncio.gather(*(ask(at) for at in range(len(ends))))
    refused = sum(status != 200 for status in statuses)
    return {"turns": job["turns"] * len(ends), "bytes": sum(sizes), "refused": refused}


async def _ask_whole(page: Page, job: Job) -> None:
    """Ask for an answer; raises ConnectionError where it is not whole: an error costs little."""
    reader = Reader(job["deltas"])
    await page.ask(job["text"], reader)
    if reader.seen < job["deltas"]:
        raise ConnectionError(f"an answer had {reader.seen} of {job['deltas']} deltas")


async def measure_acks(job: Job, client: ClientSession) -> Job:
    """Send messages at a fixed rate, and measure the time until each is stored."""
    tabs = await _open_all(job)
    await _wait_for_start(len(tabs))
    latencies: list[float] = []
    statuses: dict[str, int] = {}

    async def one(at: int, due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.time()))
        status = await _send(job, client, job["chats"][at % len(job["chats"])])
        # Measured from the due time: a sender that is late has waited too.
        latencies.append((time.time() - due) * 1e3)
        statuses[str(status)] = statuses.get(str(status), 0) + 1

    noise = asyncio.create_task(_send_noise(job, client))
    began, count = time.time() + 0.1, round(job["rate"] * job["seconds"])
    async with asyncio.timeout(job["seconds"] + 60):
        await asyncio.gather(*(one(at, began + at / job["rate"]) for at in range(count)))
    noise.cancel()
    return {"ack": compute_quantiles(latencies), "sent": count, "statuses": statuses}


async def hold_idle(job: Job, client: ClientSession) -> Job:
    """Hold sockets and do nothing."""
    began = time.time()
    tabs = await _open_all(job)
    opened = time.time() - began
    await _wait_for_start(len(tabs))
    await asyncio.sleep(job["seconds"])
    return {"opened": opened, "closed": sum(tab.lost > 0 for tab in tabs)}


async def measure_restart(job: Job, client: ClientSession) -> Job:
    """Hold tabs on running answers through a restart, and compare what they show at the end."""
    tabs = await _open_all(job)
    senders = [tab for tab in tabs if "text" in tab.chat]
    for status in await asyncio.gather(*(_send(job, client, tab.chat) for tab in senders)):
        if status != 200:
            raise ConnectionError(f"a message was answered with HTTP {status}")
    async with asyncio.timeout(_OPENING):
        while not all(tab.shown.stamps for tab in senders):
            await asyncio.sleep(_LOOK)
    await _wait_for_start(len(tabs))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(job["seconds"]):
            while not all(tab.lost and tab.is_here.is_set() for tab in tabs):
                await asyncio.sleep(_LOOK)
    back = [tab for tab in tabs if tab.lost and tab.is_here.is_set()]
    began = min((tab.lost for tab in tabs if tab.lost), default=0.0)
    found = {
        "back": compute_quantiles(tab.came - began for tab in back),
        "away": len(tabs) - len(back),
        "opened": max(tab.opened for tab in tabs),
    }
    return found | await count_unequal(tabs, await _ask_stored(found))


async def _open_pages(job: Job, client: ClientSession) -> list[Page]:
    """Open a page of the relay or of a rival for each conversation; none of the product."""
    if not (name := job.get("page", "")):
        return []
    pages = [make_page(name, client, job["url"], job["model"]) for _ in job["chats"]]
    await asyncio.gather(*(page.open() for page in pages))
    return pages


async def _open_all(job: Job, handlers: Sequence[Callable[[str], None]] | None = None) -> list[Tab]:
    """Open a tab on each conversation, `_AT_ONCE` at a time, and wait for their snapshots."""
    gate = asyncio.Semaphore(_AT_ONCE)
    takers: Sequence[Callable[[str], None] | None] = handlers or [None] * len(job["chats"])
    tabs = [Tab(job["url"], chat, taker) for chat, taker in zip(job["chats"], takers, strict=True)]

    async def one(tab: Tab) -> None:
        async with gate:
            _following.append(asyncio.create_task(tab.follow()))
            async with asyncio.timeout(_OPENING):
                await tab.is_here.wait()

    await asyncio.gather(*(one(tab) for tab in tabs))
    return tabs


async def _wait_for_start(ready: int) -> None:
    """Report that all tabs are connected, and wait for the start line."""
    _print({"ready": ready})
    await asyncio.to_thread(sys.stdin.readline)


async def _ask_stored(found: Job) -> dict[str, list[str]]:
    """Report the findings; return the stored stamps by conversation."""
    _print(found)
    stored: dict[str, list[str]] = json.loads(await asyncio.to_thread(sys.stdin.readline))
    return stored


def _print(found: Job) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


_KINDS = {
    "stream": measure_stream,
    "turns": measure_turns,
    "acks": measure_acks,
    "idle": hold_idle,
    "again": measure_restart,
}


async def main() -> None:
    job = json.loads(await asyncio.to_thread(sys.stdin.readline))
    async with open_client() as client:
        _print(await _KINDS[job["kind"]](job, client))


if __name__ == "__main__":
    asyncio.run(main())
