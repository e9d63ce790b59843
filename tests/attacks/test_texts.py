"""Odd texts at every boundary: stored or refused in words, never an error of ours.

PostgreSQL, which refuses more, has every text in every form; SQLite has those that it minds.
"""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from django.test import Client

from conversations.models import Budget, Conversation, User
from conversations.rendering.visible import reveal_hidden
from tests.attacks.sites import address, quiet_world, views, visitor, world
from tests.support import people_and_turns, stored_turns
from tests.support.one_database import ON_POSTGRES

pytestmark = pytest.mark.django_db
FORM = "application/x-www-form-urlencoded"
TEXTS = {
    "nul": "a\0b",
    "surrogates": "a\ud800b\udfff",
    "no characters": "\uffff\ufffe\U0010ffff",
    "mark of order": "\ufeffa\u2028b\u2029c\x85d\x0be",
    "turned": "\u202etxt.exe\u2066\u2067 \u200f",
    "unseen": "\u200b\u200d\u2060\u00ad\U000e0041\U000e007f",
    "marks": "a" + "\u0301" * 2_000,
    "spaces": " \t\r\n\u00a0\u3000" * 50,
    "word": "x" * 50_000,
    "lines": "line\n" * 2_000,
    "emoji": "\U0001f600\U0001f469\u200d\U0001f4bb" * 600,
    "numbers": "9" * 5_000,
}
#: What SQLite, too, does not take for a text or a number.
MINDED = ("nul", "surrogates", "numbers")
#: Names that forms of the site use, and those that an attacker would like them to use.
FIELDS = (
    "text", "title", "instructions", "q", "name", "path", "folder", "to", "id", "digest", "confirm",
    "model", "preset", "policy", "on", "old_password", "new_password1", "new_password2", "username",
    "password", "seq", "at", "note", "account", "address", "imap_host", "login", "secret", "next",
    "user", "owner", "owner_id", "is_staff", "is_superuser", "is_active", "is_exempt", "cost",
    "budget_limit", "system", "tools", "tool", "send_with", "theme", "language", "keep",
    "attachments", "client_id", "verdict", "approval_id", "session_epoch", "head", "links", "tip",
)  # fmt: skip


ASKED = ("q", "path", "prompt", "before", "next")


def body(text: str) -> tuple[bytes, str]:
    """Give a form with this text in all its fields, and its type; long ones as a page sends files.

    Python takes half a second to read a megabyte of `%` signs.
    """
    raw = text.encode("utf-8", "surrogatepass")
    fields = {name: raw for name in FIELDS if name not in ("client_id", "attachments")}
    if len(raw) < 2_000:
        return urlencode(fields).encode(), FORM
    head = '--end\r\nContent-Disposition: form-data; name="{}"\r\n\r\n'
    parts = (head.format(name).encode() + raw + b"\r\n" for name, raw in fields.items())
    return b"".join(parts) + b"--end--\r\n", "multipart/form-data; boundary=end"


@pytest.mark.parametrize(
    "name",
    [name if name in MINDED else pytest.param(name, marks=ON_POSTGRES) for name in TEXTS],
)
def test_no_form_of_the_site_breaks_on_a_text(name: str) -> None:
    ada = quiet_world()
    client = Client()
    client.force_login(ada.user)
    power = ("is_staff", "is_superuser", "is_active", "is_exempt", "username", "password")
    before = User.objects.filter(pk=ada.user.pk).values(*power).get()
    sent, kind = body(TEXTS[name])
    for view in views():
        if not view.is_admin and view.name not in (
            "logout",
            "delete_data",
            "empty_trash",
            "log_out_everywhere",
        ):
            answer = client.post(address(view, ada), sent, content_type=kind)
            assert answer.status_code < 500, view
            assert answer.status_code != 413, "no view has read it"
    raw = TEXTS[name].encode("utf-8", "surrogatepass")
    for path in ("/search/", "/files/", "/c/list/", "/usage/", "/c/new/", "/accounts/login/"):
        query = urlencode(dict.fromkeys(ASKED, raw[:20_000]))
        assert client.get(f"{path}?{query}").status_code in (200, 302, 400, 404), path
    for path in (f"/c/{ada.conversation.public_id}/", "/c/list/", "/search/?q=line", "/files/"):
        assert client.get(path).status_code == 200
    assert User.objects.filter(pk=ada.user.pk).values(*power).get() == before


def test_ten_megabytes_are_refused_with_the_reason() -> None:
    place = stored_turns.played()
    client = Client()
    client.force_login(place.user)
    url = f"/c/{place.conversation.public_id}/send/"
    before = people_and_turns.everything()
    page = client.post(url, {"text": "x" * 10_000_000})
    part = client.post(url, {"text": "x" * 10_000_000}, headers={"HX-Request": "true"})
    fields = client.post(url, {f"field{at}": "x" for at in range(10_000)})
    assert (page.status_code, part.status_code, fields.status_code) == (413, 413, 400)
    assert b"longer than the server takes" in page.content
    assert b"send-error" in part.content
    assert b"<html" not in part.content
    long = client.post(url, {"text": "x" * 200_001})
    assert long.status_code == 400
    assert b"200,000" in long.content or b"200000" in long.content
    assert people_and_turns.everything() == before


def test_fields_that_nobody_asked_for_give_no_power() -> None:
    place = stored_turns.played()
    client = Client()
    client.force_login(place.user)
    eve, limit = people_and_turns.person("eve"), Budget.objects.get(user=place.user).limit
    more = {"user": eve.pk, "owner": eve.pk, "owner_id": eve.pk, "is_staff": "1", "cost": "0",
            "is_superuser": "1", "is_exempt": "1", "budget_limit": "9" * 9, "limit": "9" * 9,
            "system": "Obey.", "policy_limits": "{}", "state": "done"}  # fmt: skip
    chat = f"/c/{place.conversation.public_id}"
    said = {"text": "Hello", "title": "Hello", "instructions": "x"}
    for path in (
        "/c/start/", f"{chat}/send/", f"{chat}/menu/rename/", f"{chat}/settings/",
        "/settings/chat/", "/settings/appearance/", "/settings/account/others/",
    ):  # fmt: skip
        answer = client.post(path, more | said)
        assert answer.status_code < 500, path
    place.user.refresh_from_db()
    powers = place.user.is_staff, place.user.is_superuser, place.user.is_exempt
    assert powers == (False, False, False)
    assert set(Conversation.objects.values_list("owner", flat=True)) == {place.user.pk}
    assert Budget.objects.get(user=place.user).limit == limit
    assert not Conversation.objects.filter(instructions__contains="Obey").exists()


# The admin.

FORMS = ("/add/", "/change/", "/grant/", "/correct/")
IN_THE_ADMIN = ("nul", "turned", "numbers")


def test_no_form_of_the_admin_breaks_on_a_text() -> None:
    ada, root, tried = world(), Client(), 0
    root.force_login(visitor("superuser"))
    for view in views():
        if not view.is_admin or not view.route.endswith(FORMS):
            continue
        url = address(view, ada)
        page = root.get(url)
        if page.status_code != 200:
            continue
        fields = Fields(page.content.decode()).names
        for name in IN_THE_ADMIN:
            raw = TEXTS[name].encode("utf-8", "surrogatepass")[:60_000]
            sent = urlencode({field: raw for field in fields if not field.endswith("_FORMS")})
            answer = root.post(url, sent, content_type=FORM)
            assert answer.status_code in (200, 302, 400, 403, 413), (view, name)
            tried += 1
    assert tried > 30


class Fields(HTMLParser):
    """The names of the fields of a page's forms."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("name")
        if tag in ("input", "textarea", "select") and name and name != "csrfmiddlewaretoken":
            self.names.add(name)


ODD_QUERIES = (
    "o=password", "o=1.2.-3", "o=%00", "o=999999999999999999999", "o=-0.-1.x", "o=\x1f",
    "password__startswith=x", "conversation__owner__password__contains=a", "id__in=%00",
    "user__password__regex=((a))", "q=%00", "q=" + "%25_" * 1_000, "q=%22%27%29%20OR%201%3D1--",
    "p=-1", "p=x", "p=99999999999999999999", "e=1", "_facets=x", "all=", "created_at__year=x",
    "created_at__gte=%00", "id__exact=9" + "9" * 40, "_popup=1&_to_field=password", "user=%00",
    "user=1%27", "state=%0A", "conversation=" + "9" * 30, "date_joined__month=2",
    "action_time__year=0&action_time__month=13", "pk__in=1,%C3%28", "__proto__=1", "__=1", "=1",
)  # fmt: skip

MANY_FILTERS = ("conversations_turn_changelist", "admin_logentry_changelist")


def test_no_order_filter_or_search_of_the_admin_breaks_or_becomes_sql() -> None:
    ada, root = world(), Client()
    root.force_login(visitor("superuser"))
    for view in views():
        if view.is_admin and view.name.endswith("_changelist"):
            # Every query on the tables with the most filters, some of them on all.
            for query in ODD_QUERIES if view.name in MANY_FILTERS else ODD_QUERIES[::8]:
                answer = root.get(f"{address(view, ada)}?{query}")
                assert answer.status_code in (200, 302, 400), (view, query)
    for query in ODD_QUERIES:
        for path in ("/admin/autocomplete/", "/admin/overview/", "/admin/overview/users.csv"):
            assert root.get(f"{path}?{query}").status_code in (200, 302, 400, 403, 404), query


# What is shown of them.


def test_the_audit_shows_what_nobody_sees() -> None:
    hidden = "pay \u202elive\u202c to\u200b\U000e0041 me"
    place = stored_turns.played(title=hidden, result=hidden)
    root = Client()
    root.force_login(visitor("superuser"))
    page = root.get(f"/admin/conversations/conversation/{place.conversation.pk}/read/")
    shown = page.content.decode()
    assert "pay ⟨U+202E⟩live⟨U+202C⟩ to⟨U+200B⟩⟨U+E0041⟩ me" in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_hidden_is_named_and_all_else_stays(name: str) -> None:
    text = TEXTS[name][:2_000]
    shown = reveal_hidden(text)
    assert not set(shown) & set("\0\u202e\u200b\U000e0041\ufeff\u2028")
    assert reveal_hidden("Grüße, 日本, 😀\n\tx") == "Grüße, 日本, 😀\n\tx"
