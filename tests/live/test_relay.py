"""The way between processes, over a real Redis: in order, not to oneself, and it comes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from channels.layers import channel_layers
from redis import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import ConnectionPool

from agentweb import env
from conversations.live import relay as relaying
from conversations.live.layer import PipelinedLayer
from conversations.live.relay import ALL, Message, Relay, group_of
from conversations.operations.redis_address import make_channel_host
from tests.support import servers
from tests.support.servers import Server

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def redis() -> Iterator[Server]:
    server = servers.start_redis()
    yield server
    server.discard()


@pytest.fixture(autouse=True)
def _layer(redis: Server, settings: Any, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setattr(relaying, "PAUSE", 0.05)
    monkeypatch.setattr(relaying, "PATIENCE", 30)
    settings.REDIS_URL = redis.url
    host = {"address": redis.url, "socket_timeout": 30, "socket_connect_timeout": 30}
    backend = "conversations.live.layer.PipelinedLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [host]}}}
    channel_layers.backends = {}
    yield
    channel_layers.backends = {}


@asynccontextmanager
async def listening(*groups: str) -> AsyncIterator[tuple[Relay, list[Message]]]:
    relay, heard = Relay(), list[Message]()

    async def hear(message: Message) -> None:
        if message.get("is_odd"):
            raise ValueError("odd")
        heard.append(message)

    await relay.start(hear)
    for group in groups:
        relay.join(group)
    await until(lambda: relay._joined == {ALL, *groups})
    try:
        yield relay, heard
    finally:
        await relay.stop()


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not happened():
            await asyncio.sleep(0.01)


async def test_all_hear_all_in_order_and_nobody_hears_oneself() -> None:
    async with listening() as (one, ones), listening() as (_, twos), listening() as (_, threes):
        for number in range(300):
            one.send(ALL, {"type": "event", "n": number})
        await until(lambda: len(twos) == len(threes) == 300)
        assert [message["n"] for message in twos] == list(range(300))
        assert twos == threes
        assert ones == []


async def test_what_waits_goes_in_few_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy process comes late to each answer of Redis, so there must not be many of them."""
    sizes: list[int] = []
    real = PipelinedLayer.group_send_many

    async def counted(self: PipelinedLayer, messages: list[tuple[str, Message]]) -> None:
        sizes.append(len(messages))
        await real(self, messages)

    monkeypatch.setattr(PipelinedLayer, "group_send_many", counted)
    async with listening() as (one, _), listening() as (_, heard):
        for number in range(300):
            one.send(ALL, {"type": "event", "n": number})
        await until(lambda: len(heard) == 300)
    assert sum(sizes) == 300
    assert max(sizes) == relaying.AT_ONCE
    assert len(sizes) <= 4


async def test_all_messages_go_by_one_connection_that_is_kept(
    redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []
    real: Any = ConnectionPool.get_connection

    async def counted(self: ConnectionPool, *args: Any, **wanted: Any) -> Any:
        taken.append(self)
        return await real(self, *args, **wanted)

    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "event"})
        await until(lambda: len(heard) == 1)
        with Redis.from_url(redis.url) as client:
            before = client.info("stats")["total_connections_received"]
            monkeypatch.setattr(ConnectionPool, "get_connection", counted)
            for number in range(20):
                one.send(ALL, {"type": "event", "n": number})
                await asyncio.sleep(0.01)
            await until(lambda: len(heard) == 21)
            assert client.info("stats")["total_connections_received"] == before
    assert taken == []


async def test_behind_sentinels_messages_go_to_the_server_that_they_name(
    redis: Server, settings: Any
) -> None:
    sentinel = servers.start_sentinel(redis, "chats")
    hosts = [make_channel_host(sentinel.url, 30)]
    settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"] = hosts
    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "event"})
        await until(lambda: bool(heard) or not one.is_good)
        assert one.is_good
    sentinel.discard()


async def test_a_message_after_a_connection_was_closed_is_heard(
    redis: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """As by a proxy, or a server that ends idle connections."""
    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "before"})
        await until(lambda: len(heard) == 1)
        with Redis.from_url(redis.url) as client:
            assert client.client_kill_filter(_type="normal", skipme=True)
        # The loop learns of it in between.
        await asyncio.sleep(0.1)
        one.send(ALL, {"type": "after"})
        await until(lambda: len(heard) == 2)
        assert one.is_good
    assert not [record for record in caplog.records if record.name == "agentweb.relay"]


async def test_a_send_that_was_given_up_leaves_no_reply_to_the_next(redis: Server) -> None:
    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "before"})
        await until(lambda: len(heard) == 1)
        with Redis.from_url(redis.url) as client:
            client.execute_command("CLIENT", "PAUSE", 300)
        message = [(ALL, {"type": "late", "from": ""})]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await one._layer.group_send_many(message)
        await one._layer.group_send_many([(ALL, {"type": "next", "from": ""})] * 2)
        [shard] = one._layer._get_layer()._shards
        assert not await shard._sending.can_read(), "all replies were read"
        await until(lambda: [each["type"] for each in heard][-2:] == ["next", "next"])


async def test_who_is_told_nothing_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver of channels_redis looks for a message ten times a second."""
    looks: list[float] = []
    real = PubSub.get_message

    async def counted(self: PubSub, **wanted: Any) -> Any:
        looks.append(wanted["timeout"])
        return await real(self, **wanted)

    monkeypatch.setattr(PubSub, "get_message", counted)
    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "event"})
        await until(lambda: len(heard) == 1)
        looks.clear()
        await asyncio.sleep(0.5)
        assert looks == []
        one.send(ALL, {"type": "event"})
        await until(lambda: len(heard) == 2)


async def test_a_conversation_that_takes_long_holds_up_no_other() -> None:
    relay, heard, goes_on = Relay(), list[int](), asyncio.Event()

    async def hear(message: Message) -> None:
        if message["conversation"] == 1:
            await goes_on.wait()
        heard.append(message["conversation"])

    await relay.start(hear)
    await until(lambda: relay._joined == {ALL})
    async with listening() as (other, _):
        for number in (1, 1, 2, 3):
            other.send(ALL, {"type": "event", "conversation": number})
        await until(lambda: len(heard) == 2)
        assert sorted(heard) == [2, 3]
        goes_on.set()
        await until(lambda: len(heard) == 4)
    await relay.stop()


async def test_only_who_looks_at_a_conversation_hears_of_it() -> None:
    one, two = listening(group_of(1)), listening(group_of(2))
    async with one as (_, ones), two as (second, twos), listening() as (other, _):
        other.send(group_of(1), {"type": "a"})
        other.send(group_of(2), {"type": "b"})
        await until(lambda: bool(ones and twos))
        second.leave(group_of(2))
        await until(lambda: second._joined == {ALL})
        other.send(group_of(2), {"type": "c"})
        other.send(ALL, {"type": "d"})
        await until(lambda: len(ones) == len(twos) == 2)
    assert [message["type"] for message in twos] == ["b", "d"]


async def test_installations_that_share_a_server_do_not_hear_each_other(settings: Any) -> None:
    """What is published is heard in all databases of a server."""
    config = settings.CHANNEL_LAYERS["default"]["CONFIG"]
    names = [
        env.make_namespace(f"redis://one:6379/{number}", secret)
        for number, secret in ((0, "a"), (1, "a"), (0, "b"))
    ]
    assert env.make_namespace("redis://other:6379", "a") == names[0]
    heard = []
    async with AsyncExitStack() as stack:
        for name in names:
            config["prefix"], channel_layers.backends = name, {}
            heard.append(await stack.enter_async_context(listening(group_of(1))))
        for relay, _ in heard:
            for group in (group_of(1), ALL):
                relay.send(group, {"type": "a"})
        config["prefix"], channel_layers.backends = names[0], {}
        same, ones = await stack.enter_async_context(listening(group_of(1)))
        heard[0][0].send(group_of(1), {"type": "b"})
        same.send(ALL, {"type": "c"})
        await until(lambda: bool(ones) and any(row["type"] == "c" for row in heard[0][1]))
        assert [[row["type"] for row in rows] for _, rows in heard] == [["c"], [], []]


async def test_what_cannot_be_understood_does_not_stop_the_hearing() -> None:
    async with listening() as (one, _), listening() as (_, heard):
        one.send(ALL, {"type": "a", "is_odd": True})
        one.send(ALL, {"type": "b"})
        await until(lambda: len(heard) == 1)


async def test_it_is_said_once_that_redis_is_away_and_all_hear_again(
    redis: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "agentweb.relay")
    async with listening(group_of(7)) as (one, _), listening(group_of(7)) as (_, heard):
        redis.kill()
        for _ in range(30):
            one.send(group_of(7), {"type": "lost"})
            await asyncio.sleep(0.01)
        await until(lambda: not one.is_good)
        redis.start()  # a server ends with the thread that started it

        async def again() -> None:
            while not any(message["type"] == "back" for message in heard):
                one.send(group_of(7), {"type": "back"})
                await asyncio.sleep(0.1)

        await asyncio.wait_for(again(), 60)
    said = [record.message for record in caplog.records if record.name == "agentweb.relay"]
    assert sum("pages are told late" in text for text in said) <= 4
    assert any("is back" in text for text in said)


async def test_a_server_starts_while_redis_is_away(redis: Server) -> None:
    redis.kill()
    relay, heard = Relay(), list[Message]()

    async def hear(message: Message) -> None:
        heard.append(message)

    await asyncio.wait_for(relay.start(hear), 60)
    relay.join(group_of(1))
    relay.send(ALL, {"type": "lost"})
    redis.start()  # a server ends with the thread that started it
    async with listening() as (other, _):
        await until(lambda: relay._joined == {ALL, group_of(1)})

        async def again() -> None:
            while not heard:
                other.send(group_of(1), {"type": "found"})
                await asyncio.sleep(0.1)

        await asyncio.wait_for(again(), 60)
    await relay.stop()


async def test_more_than_can_be_sent_is_dropped_and_nobody_waits(redis: Server) -> None:
    async with listening() as (one, _), listening() as (_, heard):
        for number in range(relaying.MOST + 500):
            one.send(ALL, {"type": "event", "n": number})
        assert not one.is_good
        await until(lambda: len(heard) >= relaying.MOST)
        await until(lambda: one.is_good)
    assert len(heard) < relaying.MOST + 500


async def test_without_redis_nothing_is_sent(settings: Any) -> None:
    settings.REDIS_URL = ""
    relay = Relay()

    async def hear(message: Message) -> None:
        raise AssertionError

    await relay.start(hear)
    assert not relay.is_open
    relay.join(ALL)
    relay.send(ALL, {"type": "event"})
    await relay.stop()


async def test_it_stops_in_a_bounded_time_whatever_its_layer_does(monkeypatch: Any) -> None:
    class Deaf:
        """One that goes on although it was told to stop, as a cancelled wait may."""

        async def flush(self) -> None:
            await self.group_send_many(())

        async def group_send_many(self, messages: Iterable[tuple[str, Message]]) -> None:
            while not is_over:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

    is_over: list[bool] = []
    monkeypatch.setattr(relaying, "PATIENCE", 0.2)
    async with listening() as (relay, _):
        real, relay._layer = relay._layer, Deaf()
        relay.send(ALL, {"type": "event"})
        tasks = relay._tasks
        async with asyncio.timeout(60):
            await relay.stop()
    assert not relay.is_open
    is_over.append(True)
    while any(not task.done() for task in tasks):
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
    await real.flush()
