"""A person at a browser, without the browser: requests, the chat's socket, and the resulting page.

    person = rig.person()                      # a user with a session, and a budget
    chat = await person.begin("Hello")         # a conversation, its page loaded, its socket open
    sent = await chat.send("And then?")        # stored: the server acknowledged it
    await chat.ended()                         # the page shows the end of its last turn
    chat.page                                  # the page after all frames
    await chat.close()

It does what the page's scripts do: a message keeps its id until the server has it and is sent again
if it is unknown whether it arrived (`outbox.js`); a broken socket reconnects after a random,
growing pause, and then gets a snapshot. With several web processes each request and each socket
goes to the next one that answers, as behind a load balancer. `person.acknowledged` lists what the
server acknowledged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlencode
from uuid import uuid4

from agentweb.bench.http_client import Answer, open_client, send_request
from agentweb.bench.websocket_client import Closed, Refused, Socket, connect
from tests.web.fold import Page

#: Seconds that a request or a handshake may take.
PATIENCE = 60
#: Close codes without a reason for the page; after the others it connects again.
_BREAKS = (1005, 1006, 1011, 1012, 1013)
_CONNECT = re.compile(r'ws-connect="([^"]+)"')
_TOKEN = re.compile(r'data-token="(\w+)"')
QUESTION = re.compile(
    r'name="approval_id" value="(\d+)">\s*<input type="hidden" name="digest" value="([\w:]+)"'
)
FINAL = ("done", "failed", "cancelled", "interrupted")
#: A CSRF secret of 32 letters is its own token.
_CSRF = "rig0" * 8


class Away(Exception):
    """No web process answered."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message the server has acknowledged."""

    conversation: str
    client_id: str
    text: str


@dataclass
class Person:
    """A logged-in person; `ports` returns the ports of the current web processes."""

    ports: Callable[[], Sequence[int]]
    name: str = ""
    #: Cookies; `log_in` gets them over HTTP, people that the rig makes have them from the start.
    cookies: dict[str, str] = field(default_factory=lambda: {"csrftoken": _CSRF})
    dice: Random = field(default_factory=Random)
    #: Seconds of the first pause before a broken socket reconnects, and of the longest.
    pause: float = 0.1
    longest_pause: float = 2.0
    acknowledged: list[Sent] = field(default_factory=list)
    #: Open tabs.
    chats: list[Chat] = field(default_factory=list)
    _turn: int = 0

    def next_ports(self) -> list[int]:
        """Return the ports in the order to try them now."""
        ports = list(self.ports())
        self._turn += 1
        at = self._turn % max(1, len(ports))
        return [*ports[at:], *ports[:at]]

    @property
    def headers(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    async def ask(
        self, method: str, path: str, form: dict[str, str] | None = None, **headers: str
    ) -> Answer:
        """Send a request to the first web process that answers; raises Away."""
        sent = {**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
        body = None
        if form is not None:
            sent |= {"X-CSRFToken": self.cookies["csrftoken"], "HX-Request": "true"}
            sent["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        for port in self.next_ports():
            try:
                answer = await make_request(port, method, path, sent, body)
            except (OSError, TimeoutError):
                # It is unknown whether the request arrived; a repeated post has the same id.
                continue
            self.cookies |= answer.cookies
            return answer
        raise Away

    async def insist(self, path: str, form: dict[str, str], seconds: float = 120) -> Answer:
        """Post until the server answers, with success or a refusal."""
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Away):
                    answer = await self.ask("POST", path, form)
                    if answer.status < 500:
                        return answer
                await asyncio.sleep(self.dice.uniform(0.02, 0.2))

    async def log_in(self, name: str, password: str) -> None:
        """Log in with the form of the log-in page."""
        form = {"username": name, "password": password, "csrfmiddlewaretoken": _CSRF}
        answer = await self.ask("POST", "/accounts/login/", form)
        assert answer.status == 302, answer.status

    async def begin(self, text: str, *, seconds: float = 120) -> Chat:
        """Start a conversation with its first message, and open its page."""
        client_id = str(uuid4())
        answer = await self.insist("/c/start/", {"text": text, "client_id": client_id}, seconds)
        assert answer.status == 200, (answer.status, answer.text[:300])
        path = answer.headers["hx-redirect"]
        self.acknowledged.append(Sent(_conversation(path), client_id, text))
        return await self.open(path)

    async def open(self, path: str, seconds: float = 120) -> Chat:
        """Open another tab on a conversation, by the path of its page."""
        chat = Chat(self, path)
        await chat.load(seconds)
        chat.follow()
        self.chats.append(chat)
        return chat

    @property
    def paths(self) -> set[str]:
        """Return the paths of the conversations that this person has written in."""
        return {f"/c/{sent.conversation}/" for sent in self.acknowledged}

    async def close(self) -> None:
        """Close every tab."""
        while self.chats:
            await self.chats.pop().close()


@dataclass
class Chat:
    """A tab: `page` is the result of its HTML and its frames."""

    person: Person
    path: str
    page: Page = field(default_factory=Page)
    #: Number of sockets opened, and the code of the last close.
    opened: int = 0
    code: int = 0
    socket: Socket | None = None
    frames: int = 0
    #: Most unread bytes in the kernel's receive buffer; 0: the default.
    room: int = 0
    _address: str = ""
    _task: asyncio.Task[None] | None = None

    @property
    def conversation(self) -> str:
        return _conversation(self.path)

    async def load(self, seconds: float = 120) -> None:
        """Load, or reload, the page."""
        async with asyncio.timeout(seconds):
            while True:
                with suppress(Away):
                    answer = await self.person.ask("GET", self.path)
                    if answer.status == 200:
                        break
                    assert answer.status >= 500, (answer.status, answer.text[:300])
                await asyncio.sleep(0.1)
        self.page = Page(answer.text)
        found, token = _CONNECT.search(answer.text), _TOKEN.search(answer.text)
        assert found is not None, "the page opens no socket"
        assert token is not None, "the page has no token"
        self._address = f"{found[1]}?token={token[1]}"

    def follow(self) -> None:
        """Open the socket, and again whenever it breaks, until `close`."""
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        broken = 0
        while True:
            try:
                port = self.person.next_ports()[0]
                address = f"{self._address}&{self.page.bookmark}"
                self.socket = await open_socket(
                    port, address, self.person.headers, receive_buffer=self.room
                )
                self.opened += 1
                while True:
                    message = await self.socket.read(None)
                    broken = 0
                    self.frames += 1
                    self.page.take(message)
            except Refused as refused:
                if refused.status < 500:
                    self.code = refused.status
                    return
            except Closed as closed:
                self.code = closed.code
                if closed.code not in _BREAKS:
                    return
            except (OSError, TimeoutError, IndexError):
                pass
            finally:
                if self.socket is not None:
                    self.socket.abort()
                    self.socket = None
            broken += 1
            longest = min(self.person.longest_pause, self.person.pause * 2**broken)
            await asyncio.sleep(self.person.dice.uniform(0.0, longest))

    async def close(self) -> None:
        """Close the tab."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def post(self, name: str, form: dict[str, str], seconds: float = 120) -> Answer:
        """Post to one of the conversation's URLs until a process answers."""
        return await self.person.insist(f"{self.path}{name}/", form, seconds)

    async def send(self, text: str, client_id: str = "", seconds: float = 120) -> Answer:
        """Send a message under one id until the server has it, or refuses it."""
        client_id = client_id or str(uuid4())
        answer = await self.post("send", {"text": text, "client_id": client_id}, seconds)
        if answer.status == 200:
            self.person.acknowledged.append(Sent(self.conversation, client_id, text))
        return answer

    async def stop(self) -> Answer:
        return await self.post("stop", {})

    async def retry(self, number: int) -> Answer:
        """Press "Try again" under a turn."""
        return await self.post(f"retry/{number}", {"client_id": str(uuid4())})

    async def decide(self, verdict: str = "once") -> int:
        """Decide every approval that a reload of the page shows; return how many."""
        answer = await self.person.ask("GET", self.path)
        found = QUESTION.findall(answer.text)
        for approval_id, digest in found:
            form = {"approval_id": approval_id, "digest": digest, "verdict": verdict}
            await self.post("decide", form)
        return len(found)

    @property
    def number(self) -> int:
        """Return the number of the last turn shown; 0 without one."""
        shown = self.page.sections
        return int(shown[-1].id.removeprefix("turn-")) if shown else 0

    def state(self, number: int = 0) -> str:
        """Return the state shown of a turn, by default of the last one."""
        found = self.page.find(f"turn-{number or self.number}-status")
        return found.attributes["data-state"] if found else ""

    def text(self, number: int = 0) -> str:
        return self.page.text(f"turn-{number or self.number}")

    async def ended(self, number: int = 0, seconds: float = 120) -> str:
        """Wait until the page shows the end of a turn; return its state."""
        await self.shows(lambda: self.state(number) in FINAL, seconds)
        return self.state(number)

    async def shows(self, happened: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until the page satisfies `happened`."""
        try:
            async with asyncio.timeout(seconds):
                while not happened():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            shown = [(name, self.state(int(name[5:])), text) for name, text in self.page.turns]
            raise AssertionError(f"{self.path} ({self.opened}, {self.code}): {shown}") from None

    async def say(self, text: str, seconds: float = 120) -> str:
        """Send a message to an idle conversation, and wait for the end of its turn."""
        before = self.number
        answer = await self.send(text)
        assert answer.status == 200, answer.text[:300]
        await self.shows(lambda: self.number > before, seconds)
        return await self.ended(seconds=seconds)

    async def fresh(self) -> Page:
        """Return a newly loaded page."""
        other = Chat(self.person, self.path)
        await other.load()
        return other.page

    async def differences(self, seconds: float = 120) -> list[str]:
        """Return the differences from a newly loaded page, once a lost hint is made up for."""
        deadline = asyncio.get_running_loop().time() + seconds
        while found := _compared(self.page, await self.fresh()):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.2)
        return [f"{self.path}: {each}" for each in (*found, *self.page.missed)]


async def make_request(
    port: int, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
) -> Answer:
    """Make one request on a connection of its own; raises OSError or TimeoutError."""
    async with open_client(PATIENCE) as client:
        return await send_request(client, method, f"http://127.0.0.1:{port}{path}", headers, body)


async def open_socket(
    port: int, path: str, headers: Mapping[str, str], *, receive_buffer: int = 0
) -> Socket:
    """Open a socket; raises Refused, Closed, OSError or TimeoutError."""
    return await connect(
        f"ws://127.0.0.1:{port}{path}",
        headers=headers,
        receive_buffer=receive_buffer,
        seconds=PATIENCE,
    )


def _compared(mine: Page, fresh: Page) -> list[str]:
    shown, now = dict(mine.turns), dict(fresh.turns)
    if [name for name, _ in mine.turns] != [name for name, _ in fresh.turns]:
        return [f"shows {[n for n, _ in mine.turns]}, not {[n for n, _ in fresh.turns]}"]
    return [
        f"{name}: {shown[name]!r} is not {text!r}"
        for name, text in now.items()
        if shown[name] != text
    ]


def _conversation(path: str) -> str:
    return path.strip("/").rpartition("/")[2]
