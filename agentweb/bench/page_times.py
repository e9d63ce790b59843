"""Pages of long conversations and of many, beside the same pages with next to nothing on them.

The conversations come in through the importer, as anybody's would, and the pages are asked for as
a browser asks for them. `floor` is the same page of a conversation of one turn: what a page costs
at all. Statements are counted with the time, because they are the same on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.conf import settings
from django.test import Client
from django.urls import reverse

from agentweb.bench.made_markdown import make_record
from agentweb.bench.own_database import Queries, make_person
from conversations.conf import conf
from conversations.live import render
from conversations.log import turn_state
from conversations.transcript import paging
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from conversations.turns import turns

if TYPE_CHECKING:
    from conversations.models import Conversation, User


@dataclass(frozen=True, slots=True)
class Page:
    """One page or service: milliseconds of wall-clock and of processor time, statements, bytes.

    `floor` is the processor time, in milliseconds, for the shortest conversation or list.
    """

    name: str
    milliseconds: float
    processor: float
    queries: int
    size: int
    floor: float = 0.0

    @property
    def ratio(self) -> float:
        return self.processor / max(self.floor, 1e-6)

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def import_long_conversation(user: User, turns: int, rounds: int = 0) -> Conversation:
    """Import a conversation of `turns` turns, each of `rounds` tool rounds."""
    recording = parse_recording(make_record(f"talk {uuid4()}", turns, rounds))
    return import_recording(user=user, recording=recording, model=conf.model)


def make_reader(name: str) -> tuple[User, Client]:
    """Create a person and a logged-in test client."""
    user = make_person(name)
    host = next((host for host in settings.ALLOWED_HOSTS if host[:1] not in "*.["), "localhost")
    client = Client(SERVER_NAME=host, raise_request_exception=True)
    client.force_login(user)
    return user, client


def measure_conversation_pages(turns: int, rounds: int, runs: int) -> list[Page]:
    """Measure the pages of one conversation of this length, with one of one turn as the floor."""
    user, client = make_reader(f"reader {uuid4()}")
    short, long = (
        import_long_conversation(user, 1, rounds),
        import_long_conversation(user, turns, rounds),
    )
    return _beside(_pages(client, short, runs), _pages(client, long, runs))


def _beside(floors: list[Page], pages: list[Page]) -> list[Page]:
    both = zip(floors, pages, strict=True)
    return [replace(page, floor=floor.processor) for floor, page in both]


def _pages(client: Client, conversation: Conversation, runs: int) -> list[Page]:
    address = reverse("chat", args=[conversation.public_id])
    last = conversation.leaf
    # As htmx requests a fragment.
    part = {"headers": {"hx-request": "true"}}

    def send() -> str:
        turn = turns.send_prompt(conversation=conversation, text="And then?", client_id=uuid4())
        turns.request_stop(turn=turn)  # type: ignore[arg-type]
        return ""

    def read_page(query: str = "", **extra: Any) -> Callable[[], str]:
        return lambda: _text(client, address + query, **extra)

    return [
        measure_page("open", read_page(), runs),
        measure_page("earlier", read_page(f"?before={last}", **part), runs),
        measure_page("around a message", read_page(f"?m={conversation.head // 2 + 1}"), runs),
        measure_page("snapshot", lambda: _snapshot(conversation, last), runs),
        measure_page(
            "state of a turn", lambda: str(turn_state.load_state(conversation, conf.model).view), 1
        ),
        measure_page("send", send, 1),
    ]


def _snapshot(conversation: Conversation, after: int) -> str:
    return render.render_snapshot(conversation.pk, paging.read_bookmark(conversation, after), None)[
        0
    ]


def measure_list_pages(conversations: int, runs: int) -> list[Page]:
    """Measure the lists of a person with `conversations` conversations, with one as the floor."""
    addresses = {
        "new chat": reverse("new_chat"),
        "list": reverse("list"),
        "search": reverse("search") + "?q=walnuts",
        "search, no hit": reverse("search") + "?q=macadamia",
    }
    found: list[list[Page]] = []
    for count in (1, conversations):
        user, client = make_reader(f"reader {uuid4()}")
        for _ in range(count):
            import_long_conversation(user, 1)
        pages = addresses.items()
        found.append([measure_page(name, partial(_text, client, at), runs) for name, at in pages])
    return _beside(*found)


def _text(client: Client, address: str, **extra: Any) -> str:
    return client.get(address, **extra).content.decode()


def measure_page(name: str, ask: Callable[[], str], runs: int) -> Page:
    with Queries().counting() as queries:
        first = ask()
    clock, processor = [], []
    for _ in range(runs):
        began, spent = time.perf_counter(), time.process_time()
        ask()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    return Page(
        name, median(clock) * 1e3, median(processor) * 1e3, queries.count, len(first.encode())
    )
