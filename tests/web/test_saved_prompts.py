"""Saved prompts: written, searched, copied and deleted by their owner; the site's are read."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from conversations.log.legal_holds import place_hold, release_hold
from conversations.models import SavedPrompt, SitePrompt, User
from conversations.saved_prompts import saved_prompts
from conversations.saved_prompts.saved_prompts import Wording, add_prompt
from tests.support import people_and_turns
from tests.web.pages import HTMX, client_of, html_of
from tests.web.test_own_data import archive_of

pytestmark = pytest.mark.django_db
URL = "/settings/prompts/"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def ada() -> User:
    return people_and_turns.person("ada")


@pytest.fixture
def client(ada: User) -> Client:
    return client_of(ada)


def keep(user: User, title: str, command: str = "", text: str = "Write.") -> SavedPrompt:
    return add_prompt(owner_id=user.pk, wording=Wording(title, command, text))


def post(client: Client, path: str, **sent: str) -> Any:
    return client.post(path, {"title": "Report", "command": "", "text": "Write."} | sent)


def test_a_prompt_is_written_changed_duplicated_and_deleted(client: Client) -> None:
    assert "You have no prompts yet." in html_of(client, URL)
    assert post(client, f"{URL}new/", title="Weekly Report", text="Of\r\n{{w}}")["Location"] == URL
    row = SavedPrompt.objects.get()
    assert (row.command, row.text) == ("weekly-report", "Of\n{{w}}")
    own = f"{URL}{row.public_id}/"
    page = html_of(client, own)
    assert 'value="weekly-report"' in page
    assert post(client, own, title="Report", command="/week")["Location"] == URL
    assert "/week" in html_of(client, URL)
    copied = client.post(f"{own}copy/")["Location"]
    other = SavedPrompt.objects.exclude(pk=row.pk).get()
    assert copied == f"{URL}{other.public_id}/"
    assert (other.title, other.command, other.text) == ("Report", "week-2", "Write.")
    assert client.post(f"{own}delete/")["Location"] == URL
    assert SavedPrompt.objects.get() == other
    assert client.post(f"{own}delete/").status_code == 404


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"title": ""}, "This field is required."),
        ({"title": "x" * 101}, "at most 100 characters"),
        ({"command": "two words"}, "Use small letters a to z"),
        ({"command": "x" * 41}, "at most 40 characters"),
        ({"text": " \n"}, "This field is required."),
        ({"text": "x" * 20_001}, "At most 20,000 characters fit; these are 20,001."),
        ({"text": "a\n{{#if x}}"}, "Line 2, “#if x”: this is no variable."),
        ({"text": "{{" + "a" * 41 + "}}"}, "has at most 40 characters"),
        ({"text": "{{a:b}}"}, "choices are at least two"),
        ({"text": "{{a:" + "|".join("abcdefghijklmnopqrstu") + "}}"}, "at most 20 choices"),
        ({"text": "{{a=1}}{{a=2}}"}, "Describe it once"),
        ({"text": "".join(f"{{{{v{n}}}}}" for n in range(21))}, "at most 20 variables"),
        ({"text": "{{a"}, "nothing closes it in this line"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(
    client: Client, sent: dict[str, str], words: str
) -> None:
    answer = post(client, f"{URL}new/", **sent)
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert not SavedPrompt.objects.exists()


def test_numbers_of_a_refusal_are_written_as_the_reader_writes_them(client: Client) -> None:
    given = {"title": "a", "command": "a", "text": "x" * 20_001}
    page = client.post(f"{URL}new/", given, headers={"Accept-Language": "de"}).content.decode()
    assert "20.000" in page
    assert "20.001" in page


def test_a_command_is_one_prompt_of_a_person(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = keep(ada, "One", "x"), keep(ada, "Two", "y")
    keep(people_and_turns.person("eve"), "Theirs", "z")
    for path in (f"{URL}new/", f"{URL}{second.public_id}/"):
        assert "with this command already" in post(client, path, command="x").content.decode()
    assert post(client, f"{URL}new/", command="z").status_code == 302
    assert keep(ada, "x").command == "x-2"
    assert keep(ada, "日本").command == "prompt"
    assert keep(ada, "a_-b").command == "a-b"
    assert len({keep(ada, "m" * 100).command for _ in range(3)}) == 3
    monkeypatch.setattr(
        saved_prompts, "MOST_PROMPTS", SavedPrompt.objects.filter(owner=ada).count()
    )
    assert "no more fit" in post(client, f"{URL}new/").content.decode()
    client.post(f"{URL}{first.public_id}/copy/")
    assert "no more fit" in html_of(client, URL)


def test_a_search_finds_titles_and_commands_in_any_case(client: Client, ada: User) -> None:
    keep(ada, "ÜBERSICHT der Woche", "week")
    keep(ada, "Weekly summary", "sum-up")
    keep(ada, "Other", "other")
    SitePrompt.objects.create(title="Wochenplan", command="plan", text="x")
    for asked, found in {
        "übersicht": ["/week"], "/week": ["/week", "/sum-up"], "woche": ["/week", "/plan"],
        "sum weekly": ["/sum-up"], "nothing": [],
    }.items():  # fmt: skip
        part = client.get(URL, {"q": asked}, headers=HTMX).content.decode()
        assert "<html" not in part
        shown = sorted(found, key=part.find)
        assert shown == found, asked
        assert all(command in part for command in found)
        assert "/other" not in part
    assert "None of your prompts fits." in part


def test_a_list_costs_the_same_for_one_and_for_many(
    client: Client, ada: User, django_assert_num_queries: Any
) -> None:
    for count in (1, 30):
        for n in range(count):
            keep(ada, f"{count} {n}", text="x" * 10_000)
            SitePrompt.objects.create(title="x", command=f"c{count}-{n}", text="x" * 10_000)
        # The session, the person, and the two lists.
        with django_assert_num_queries(4):
            part = client.get(URL, headers=HTMX).content.decode()
        assert len(part) < 4_000 + 2 * (count + 1) * 1_500


def test_what_a_prompt_says_is_text(client: Client, ada: User) -> None:
    row = keep(ada, HOSTILE, "x", f"</textarea>{HOSTILE}{{{{a=</textarea>{HOSTILE}}}}}")
    site = SitePrompt.objects.create(title=HOSTILE, command="y", text=HOSTILE)
    for path in (URL, f"{URL}{row.public_id}/", f"{URL}{site.public_id}/"):
        assert HOSTILE not in html_of(client, path)


def test_the_composer_gets_a_list_and_then_a_text(
    client: Client, ada: User, django_assert_num_queries: Any
) -> None:
    keep(ada, "Minutes", "minutes", "Of the minutes.\n<b>")
    site = SitePrompt.objects.create(title="Mail", command="mail", text="Dear {{who}}, {{how=x}}")
    SitePrompt.objects.create(title="Other", command="other", text="x")
    with django_assert_num_queries(4):
        part = client.get("/prompts/", {"q": "m"}, headers=HTMX).content.decode()
    assert [part.count(f"<code>/{each}</code>") for each in ("minutes", "mail", "other")] == [
        1,
        1,
        0,
    ]
    assert "No prompt fits." in client.get("/prompts/", {"q": "z"}).content.decode()
    (own,) = SavedPrompt.objects.values_list("public_id", flat=True)
    assert "hidden>Of the minutes.\n&lt;b&gt;</span>" in html_of(client, f"/prompts/{own}/")
    path = f"/prompts/{site.public_id}/"
    form = html_of(client, path)
    assert "data-prompt-text" not in form
    assert 'name="v0"' in form
    assert "This field is required." in client.post(path, {"v1": "y"}).content.decode()
    filled = client.post(path, {"v0": "{{you}}\r\n", "v1": ""}).content.decode()
    assert "hidden>Dear {{you}}\n, </span>" in filled


def test_another_persons_prompt_is_not_there(ada: User) -> None:
    row, eve = keep(ada, "Mine", "mine"), client_of(people_and_turns.person("eve"))
    for path in ("", "copy/", "delete/"):
        for public_id in (row.public_id, uuid4()):
            assert post(eve, f"{URL}{public_id}/{path}").status_code == 404
    for path in (f"{URL}{row.public_id}/", f"/prompts/{row.public_id}/"):
        assert eve.get(path).status_code == 404
    assert "Mine" not in html_of(eve, "/prompts/")
    assert "Mine" not in html_of(eve, URL)
    row.refresh_from_db()
    assert (row.title, SavedPrompt.objects.count()) == ("Mine", 1)


def test_a_prompt_of_the_site_is_read_and_copied_by_those_it_is_for(
    client: Client, ada: User
) -> None:
    group, other = (Group.objects.create(name=name) for name in ("Press", "Law"))
    rows = {
        name: SitePrompt.objects.create(title=name, command=name, text="About {{topic}}")
        for name in ("all", "press", "law", "both")
    }
    rows["press"].groups.add(group)
    rows["law"].groups.add(other)
    rows["both"].groups.add(group, other)
    ada.groups.add(group, Group.objects.create(name="Third"))
    page = html_of(client, URL)
    assert [page.count(f"<code>/{name}</code>") for name in rows] == [1, 1, 0, 1]
    shown = f"{URL}{rows['press'].public_id}/"
    assert "About {{topic}}" in html_of(client, shown)
    assert post(client, shown).status_code == 404
    assert client.post(f"{shown}delete/").status_code == 404
    assert client.get(f"{URL}{rows['law'].public_id}/").status_code == 404
    assert client.post(f"{URL}{rows['law'].public_id}/copy/").status_code == 404
    assert client.post(f"{shown}copy/").status_code == 302
    copied = SavedPrompt.objects.get()
    assert (copied.owner, copied.command, copied.text) == (ada, "press", "About {{topic}}")


def test_staff_with_the_right_write_prompts_of_the_site() -> None:
    boss = people_and_turns.person("boss", is_staff=True)
    boss.groups.add(Group.objects.get(name="Administrator"))
    client, path = client_of(boss), "/admin/conversations/siteprompt/add/"
    sent = {"title": "Plan", "command": "plan", "text": "A\r\n{{b"}
    assert "nothing closes it in this line" in client.post(path, sent).content.decode()
    assert client.post(path, sent | {"text": "A\r\n{{b}}"}).status_code == 302
    assert SitePrompt.objects.get().text == "A\n{{b}}"
    again = client.post(path, sent | {"text": "x"}).content.decode()
    assert "A prompt of the site has this command already." in again


def test_prompts_are_in_the_archive_and_are_erased_with_the_rest(client: Client, ada: User) -> None:
    keep(ada, "Plan", "plan", "Ü {{b}}")
    keep(people_and_turns.person("eve"), "Theirs")
    exported = json.loads(archive_of(ada).read("prompts.json"))
    assert exported == [{"title": "Plan", "command": "plan", "text": "Ü {{b}}"}]
    client.post("/settings/data/delete/", {"name": "ada"})
    assert [row.title for row in SavedPrompt.objects.all()] == ["Theirs"]


def test_under_a_legal_hold_a_prompt_stays_as_it_is(client: Client, ada: User) -> None:
    row = keep(ada, "Plan", "plan", "A")
    boss = people_and_turns.person("boss")
    hold = place_hold(owner_id=ada.pk, actor_id=boss.pk, reason="Case 1")
    own = f"{URL}{row.public_id}/"
    assert "under a legal hold" in post(client, own, command="plan", text="B").content.decode()
    client.post(f"{own}delete/")
    assert "under a legal hold" in html_of(client, URL)
    client.post("/settings/data/delete/", {"name": "ada"})
    row.refresh_from_db()
    assert row.text == "A"
    release_hold(hold_id=hold.pk, actor_id=boss.pk, reason="Closed")
    client.post(f"{own}delete/")
    assert not SavedPrompt.objects.exists()
