"""The readers of a load test, in a process of their own: they only count and take the time.

It reads one JSON line with what to do, prints a line when everything is connected, begins when it
reads another, and prints the result. An answer's deltas carry the moment they were written; how
long ago that is when they come is their latency, on one clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from typing import Any

from conversations.bench.posts import post, post_form
from conversations.bench.readers import Answer, Reader, quantiles
from conversations.bench.socket import Socket, connect

#: Handshakes that are under way at the same time.
_AT_ONCE = 32
#: Seconds of a browser's first pause before it connects again, and of its longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 16.0

Job = dict[str, Any]


async def stream(job: Job) -> Job:
    """Ask for an answer in every conversation, a moment apart, and read them all to their ends."""
    readers = [Reader(job["deltas"]) for _ in job["chats"]]
    sockets = await _open_all(job, readers) if job["kind"] == "stream" else []
    await _told(len(sockets))
    began = time.time()
    noise = asyncio.create_task(_noise(job))
    asking = [
        asyncio.create_task(_ask(job, at, reader, began)) for at, reader in enumerate(readers)
    ]
    done = [asyncio.create_task(reader.is_done.wait()) for reader in readers]
    await asyncio.wait(done, timeout=job["seconds"])
    ended = time.time()
    for task in (noise, *asking, *done):
        task.cancel()
    acks = [task.result() for task in asking if task.done() and not task.cancelled()]
    asked = [reader for at, reader in enumerate(readers) if _asks(job, at)]
    return {
        "deltas": sum(reader.seen for reader in readers),
        "expected": job["deltas"] * len(readers),
        "seconds": ended - began,
        "frames": sum(each.messages for each in sockets),
        "bytes": sum(each.bytes for each in sockets),
        "closed": sum(each.closed is not None for each in sockets),
        "latency": quantiles(each for reader in readers for each in reader.latencies),
        "first": quantiles((each.first - each.asked) * 1e3 for each in asked if each.first),
        "ack": quantiles(each for each in acks if each is not None),
    }


def _asks(job: Job, at: int) -> bool:
    """Say whether a reader asks; the others of its conversation only look."""
    return bool(job["chats"][at].get("asks", True))


async def _ask(job: Job, at: int, reader: Reader, began: float) -> float | None:
    """Ask when it is this reader's turn; gives the milliseconds until the message was stored."""
    if not _asks(job, at):
        return None
    wait = began + job["ramp"] * at / len(job["chats"]) - time.time()
    await asyncio.sleep(max(0.0, wait))
    reader.asked = time.time()
    if job["kind"] == "relay":
        await post(f"{job['url']}/ask", job["text"].encode(), {}, Answer(reader))
        return None
    status = await _send(job, job["chats"][at])
    if status != 200:
        sys.stderr.write(f"a message was answered with HTTP {status}\n")
        return None
    return (time.time() - reader.asked) * 1e3


async def _send(job: Job, chat: Job) -> int:
    address = f"{job['url']}/c/{chat['chat']}/send/"
    return await post_form(address, chat["session"], text=job["text"])


async def _noise(job: Job) -> None:
    """Be the neighbour who always asks for more than there is."""
    chats = job.get("noise", [])
    while chats:
        with contextlib.suppress(OSError):
            await asyncio.gather(*(_send(job, chat) for chat in chats))
        await asyncio.sleep(0.2)


async def acks(job: Job) -> Job:
    """Send messages at a fixed rate, whoever is answered, and time until each is stored."""
    sockets = await _open_all(job, [Reader(0) for _ in job["chats"]])
    await _told(len(sockets))
    taken: list[float] = []
    statuses: dict[str, int] = {}

    async def one(at: int, due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.time()))
        status = await _send(job, job["chats"][at % len(job["chats"])])
        # From when it was due: a sender that is late has waited as well.
        taken.append((time.time() - due) * 1e3)
        statuses[str(status)] = statuses.get(str(status), 0) + 1

    began, count = time.time() + 0.1, round(job["rate"] * job["seconds"])
    async with asyncio.timeout(job["seconds"] + 60):
        await asyncio.gather(*(one(at, began + at / job["rate"]) for at in range(count)))
    return {"ack": quantiles(taken), "sent": count, "statuses": statuses}


async def idle(job: Job) -> Job:
    """Hold sockets and do nothing."""
    began = time.time()
    sockets = await _open_all(job, [Reader(0) for _ in job["chats"]])
    opened = time.time() - began
    await _told(len(sockets))
    await asyncio.sleep(job["seconds"])
    closed = sum(each.closed is not None for each in sockets)
    return {"opened": opened, "closed": closed, "pings": sum(each.pings for each in sockets)}


async def again(job: Job) -> Job:
    """Hold sockets through a restart, connect again as browsers do, and compare what they show."""
    before = [Reader(0) for _ in job["chats"]]
    sockets = await _open_all(job, before)
    await _told(len(sockets))
    gate = asyncio.Semaphore(_AT_ONCE)
    began = 0.0

    async def one(at: int) -> tuple[float, bool]:
        nonlocal began
        await sockets[at].ended(job["seconds"])
        began = began or time.time()
        pause = _FIRST_PAUSE
        while True:
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - jitter
            pause = min(pause * 2, _LONGEST_PAUSE)
            after = Reader(0)
            with contextlib.suppress(OSError, TimeoutError):
                sockets[at] = await _open(job, at, after, gate)
                return time.time(), after.stamps == before[at].stamps and after.is_single

    async with asyncio.timeout(job["seconds"]):
        ends = await asyncio.gather(*(one(at) for at in range(len(sockets))))
    shown = sum(bool(each.stamps) for each in before)
    back = quantiles(at - began for at, _ in ends)
    return {"back": back, "unequal": sum(not is_equal for _, is_equal in ends), "answers": shown}


async def _open_all(job: Job, readers: list[Reader]) -> list[Socket]:
    """Open a socket on each conversation, some at a time, and wait for its snapshot."""
    gate = asyncio.Semaphore(_AT_ONCE)
    tasks = (_open(job, at, reader, gate) for at, reader in enumerate(readers))
    return list(await asyncio.gather(*tasks))


async def _open(job: Job, at: int, reader: Reader, gate: asyncio.Semaphore) -> Socket:
    chat, here = job["chats"][at], asyncio.Event()

    def took(text: str) -> None:
        here.set()
        reader.take(text)

    path = f"/ws/c/{chat['chat']}/?token={chat['token']}"
    address = job["url"].replace("http", "ws", 1) + path
    async with gate:
        made = await connect(address, cookies={"sessionid": chat["session"]}, took=took)
        async with asyncio.timeout(60):
            await here.wait()
    return made


async def _told(ready: int) -> None:
    """Say that all is connected, and wait for the word."""
    _say({"ready": ready})
    await asyncio.to_thread(sys.stdin.readline)


def _say(found: Job) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


_KINDS = {"stream": stream, "relay": stream, "acks": acks, "idle": idle, "again": again}


async def main() -> None:
    job = json.loads(await asyncio.to_thread(sys.stdin.readline))
    _say(await _KINDS[job["kind"]](job))


if __name__ == "__main__":
    asyncio.run(main())
