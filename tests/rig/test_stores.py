"""F46 to F57: databases and broker fail, hang or disconnect under the real product.

The rig has its own PostgreSQL, which syncs, and its own Redis, each behind a proxy. After each
fault everything acknowledged is stored once and the next message is answered, without a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import psutil
import psycopg
import pytest
import pytest_asyncio

from agentweb.bench.websocket_client import Refused
from tests.rig import model as models
from tests.rig.client import Person, open_socket
from tests.rig.installations import Installation
from tests.rig.model import Model, saying
from tests.rig.proxy import Proxy
from tests.rig.scenes import LONG, SCRIPT, SOME, started_chat, works
from tests.support import prepared_databases, servers
from tests.support.servers import Server

pytestmark = pytest.mark.asyncio
#: Seconds within which everything must work again without a restart, on a busy machine.
HEALS = 90
#: More than the transactions of one turn.
MOST_COMMITS = 60


@dataclass
class Stores:
    """A rig and its stores."""

    rig: Installation
    store: Server
    broker: Server
    to_store: Proxy
    to_broker: Proxy

    def behave(self) -> None:
        for server in (self.store, self.broker):
            if server.process is None or server.process.poll() is not None:
                # On this thread: a server ends with the thread that started it.
                server.start()
            resume(tree(server))
        for proxy in (self.to_store, self.to_broker):
            proxy.behave()


def tree(server: Server) -> list[psutil.Process]:
    """Return the processes of a server, the parent first."""
    assert server.process is not None
    parent = psutil.Process(server.process.pid)
    return [parent, *parent.children(recursive=True)]


def resume(processes: list[psutil.Process]) -> None:
    """Resume processes; a backend whose client has left ends at any moment."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    running = models.start(SCRIPT)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shared(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    store = servers.start_postgres("fsync=on", "synchronous_commit=on", "max_connections=60")
    broker = servers.start_redis()
    with Proxy(store.port) as to_store, Proxy(broker.port) as to_broker:
        url = prepared_databases.postgres(store).replace(f":{store.port}/", f":{to_store.port}/")
        redis = f"redis://127.0.0.1:{to_broker.port}/0"
        folder = tmp_path_factory.mktemp("rig-stores")
        with Installation.scaled(
            folder, model, store, broker, webs=1, workers=1, DATABASE_URL=url, REDIS_URL=redis
        ) as rig:
            rig.call("tests.rig.site_actions:allow", tools=["fire"])
            yield Stores(rig, store, broker, to_store, to_broker)
            rig.verify()
    store.discard()
    broker.discard()


@pytest_asyncio.fixture
async def stores(shared: Stores) -> AsyncIterator[Stores]:
    yield shared
    shared.rig.model.let_go()
    shared.behave()
    shared.rig.heal()
    await shared.rig.rest(120)
    await shared.rig.close()


@pytest.fixture
def rig(stores: Stores) -> Installation:
    return stores.rig


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
async def test_f46_a_database_that_restarts_in_mid_answer_loses_nothing(
    stores: Stores, rig: Installation, how: signal.Signals
) -> None:
    chat = await started_chat(rig)
    held = rig.model.hold(saying("Restarted under"), SOME)
    await chat.send(f"Restarted under {how}: {LONG}")
    await held.came()
    stores.store.stop(how)
    held.release()
    await asyncio.sleep(0.3)
    stores.store.start()
    assert await chat.ended(2, seconds=HEALS) in ("done", "interrupted")
    await works(rig, chat, HEALS)


async def test_f46_a_handshake_while_the_database_is_away_is_refused_for_now(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    address = f"{chat._address}&{chat.page.bookmark}"
    stores.store.stop(signal.SIGINT)
    with pytest.raises(Refused) as refused:
        await open_socket(rig.ports[0], address, chat.person.headers)
    assert refused.value.status == 503
    stores.store.start()
    await works(rig, chat, HEALS)


async def test_f46_every_connection_cut_at_once_is_made_again(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    for _ in range(3):
        stores.to_store.kill()
        await chat.send(f"Cut off: {LONG}")
        assert await chat.ended(seconds=HEALS) in ("done", "interrupted")
    await works(rig, chat, HEALS)


async def test_f47_a_database_that_hangs_is_said_so_and_nothing_piles_up(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    threads = rig.webs[0].threads
    for process in tree(stores.store):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
    balancer = Person(lambda: rig.ports)
    ready = await balancer.ask("GET", "/healthz/ready")
    assert ready.status == 503
    waiting = [asyncio.create_task(chat.person.ask("GET", chat.path)) for _ in range(30)]
    await asyncio.sleep(1)
    assert (await balancer.ask("GET", "/healthz/live")).status == 200
    assert rig.webs[0].threads - threads < 60
    resume(tree(stores.store))
    answers = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 90)
    assert all(getattr(each, "status", 503) in (200, 503) for each in answers)
    await works(rig, chat, HEALS)
    assert (await chat.person.ask("GET", "/healthz/ready")).status == 200


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_f48_a_message_whose_commit_nobody_saw_is_stored_once(
    stores: Stores, rig: Installation, after: bool
) -> None:
    chat = await started_chat(rig)
    for number in range(2, 6):
        stores.to_store.cut_when(b"COMMIT", after=after, times=number - 1)
        answer = await chat.send(f"Number {number}", seconds=HEALS)
        assert answer.status == 200, answer.text[:300]
        stores.to_store.behave()
        await chat.shows(lambda n=number: chat.number >= n, HEALS)  # type: ignore[misc]
        assert await chat.ended(seconds=HEALS) in ("done", "interrupted", "failed")
        assert stores.to_store.cuts
    await works(rig, chat, HEALS)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_f48_any_commit_of_a_turn_may_be_one_that_nobody_saw(
    stores: Stores, rig: Installation, after: bool
) -> None:
    chat, ran, spared = await started_chat(rig), len(rig.ran()), 0
    for number in range(2, MOST_COMMITS):
        stores.to_store.cut_when(b"COMMIT", after=after, skips=number - 2)
        answer = await chat.send(f"Number {number}: please fire", seconds=HEALS)
        assert answer.status == 200, answer.text[:300]
        await chat.shows(lambda n=number: chat.number >= n, HEALS)  # type: ignore[misc]
        assert await chat.ended(seconds=HEALS) in ("done", "interrupted", "failed")
        await rig.rest(HEALS)
        # A quick answer has no draft, so a turn may have one commit fewer than the next.
        spared = 0 if stores.to_store.cuts else spared + 1
        if spared == 2:
            break
    stores.to_store.behave()
    # The message, the claim, two calls opened and closed, the tool and its result, the end: each is
    # a transaction.
    assert number > 10, number
    fired = [key for _, key in rig.ran()[ran:]]
    assert fired
    assert len(set(fired)) == len(fired)
    await works(rig, chat, HEALS)


async def test_f49_where_no_connection_is_left_people_are_told_and_it_recovers(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    url = f"{stores.store.url.rpartition('/')[0]}/postgres"
    taken = []
    stores.to_store.kill()
    try:
        while True:
            taken.append(psycopg.connect(url))
    except psycopg.OperationalError:
        pass
    assert (await Person(lambda: rig.ports).ask("GET", "/healthz/live")).status == 200
    answer = await chat.person.ask("GET", chat.path)
    assert answer.status in (200, 503)
    for connection in taken:
        connection.close()
    await works(rig, chat, HEALS)


async def test_f51_a_lock_that_nobody_gives_back_holds_nobody_up_for_ever(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    url = rig.environment["DATABASE_URL"].replace(
        f":{stores.to_store.port}/", f":{stores.store.port}/"
    )
    limit = "-c idle_in_transaction_session_timeout=8s"
    holder = psycopg.connect(url, options=limit)
    holder.execute(
        "SELECT 1 FROM conversations_conversation WHERE public_id = %s FOR UPDATE",
        [chat.conversation],
    )
    answer = await chat.send("Held up", seconds=60)
    assert answer.status == 200
    with pytest.raises(psycopg.Error):
        holder.execute("SELECT 1")
    holder.close()
    assert await chat.ended(2, seconds=HEALS) == "done"
    await works(rig, chat, HEALS)


async def test_f57_a_broker_that_dies_in_mid_answer_only_makes_it_slower(
    stores: Stores, rig: Installation
) -> None:
    chat = await started_chat(rig)
    held = rig.model.hold(saying("Without Redis"), SOME)
    await chat.send(f"Without Redis: {LONG}")
    await held.came()
    stores.broker.kill()
    held.release()
    assert await chat.ended(2, seconds=HEALS) == "done"
    # F44: the message is stored and waits; a worker finds it by itself.
    assert await chat.say(f"And again: {LONG}", seconds=HEALS) == "done"
    assert await chat.differences() == []
    assert (await chat.person.ask("GET", "/healthz/ready")).status == 200
    stores.broker.start()
    await works(rig, chat, HEALS)


@pytest.mark.parametrize("fault", ["flushed", "slow", "frozen"])
async def test_f57_a_broker_that_forgets_or_is_slow_loses_nothing(
    stores: Stores, rig: Installation, fault: str
) -> None:
    chat = await started_chat(rig)
    held = rig.model.hold(saying(f"Redis {fault}"), SOME)
    await chat.send(f"Redis {fault}: {LONG}")
    await held.came()
    match fault:
        case "flushed":
            from redis import Redis

            with Redis.from_url(stores.broker.url) as client:
                client.flushall()
        case "slow":
            stores.to_broker.delay(0.3)
        case _:
            stores.to_broker.freeze()
    held.release()
    assert await chat.ended(2, seconds=HEALS) == "done"
    stores.to_broker.behave()
    await works(rig, chat, HEALS)
