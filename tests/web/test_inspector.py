"""The inspector's pages: for the owner and, recorded, for reviewers; hostile text is escaped."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.accounts.reading_log import READ
from conversations.context.view import wire
from conversations.library.conversations import delete_conversation
from conversations.models import Conversation, User
from tests.support import people_and_turns, stored_turns
from tests.support.damaged_rows import list_messages, unguarded
from tests.support.stored_turns import Played
from tests.web.tags import acting, elements

pytestmark = pytest.mark.django_db
#: Every page and fragment, by its path below the inspector's.
PAGES = (
    "", "?branches=all", "?drawer=1", "?before=3", "now/", "now/?brief=1", "kinds/", "calls/1/",
    "calls/2/", "calls/3/", "calls/3/?from=2", "calls/3/blocks/0/", "calls/3/blocks/3/",
    "calls/1/request/", "calls/2/request/", "diff/1..3/", "diff/2..3/", "diff/3..1/",
)  # fmt: skip
HUGE = "9" * 20
MISSING = (
    "calls/0/", "calls/4/", f"calls/{HUGE}/", "calls/4/request.json", "calls/4/request/",
    "calls/3/blocks/99/", f"calls/3/blocks/{HUGE}/", "calls/4/blocks/0/", "calls/3/gone/4/",
    "calls/3/gone/4/?fate=summary", f"calls/3/gone/{HUGE}/?fate=summary", "calls/3/gone/4/?fate=x",
    "answers/1/", "answers/77/", f"answers/{HUGE}/", "diff/1..9/", "diff/0..1/", f"diff/1..{HUGE}/",
)  # fmt: skip
HOSTILE = '"><img src=x onerror=alert(1)><div hx-get=/x hx-trigger=load>{{ x }}</pre></details>'


def visitor(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def base(played: Played, *, review: bool = False) -> str:
    return f"{'/review' if review else ''}/c/{played.conversation.public_id}/inspect/"


def reviewer(name: str = "rita", *, may_read: bool = True) -> User:
    user = people_and_turns.person(name, is_staff=True)
    if may_read:
        user.user_permissions.add(Permission.objects.get(codename="read_content"))
    return user


def fragment(client: Client, url: str) -> Any:
    return client.get(url, headers={"HX-Request": "true"})


@pytest.mark.parametrize("page", PAGES)
def test_every_page_and_fragment_is_there_for_the_owner(page: str, played: Played) -> None:
    client = visitor(played.user)
    for response in (client.get(base(played) + page), fragment(client, base(played) + page)):
        assert response.status_code == 200
        html = response.content.decode()
        assert not acting(html)
        ids = [attrs["id"] for _, attrs in elements(html) if "id" in attrs]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("page", MISSING)
def test_what_is_not_there_is_not_found(page: str, played: Played) -> None:
    assert visitor(played.user).get(base(played) + page).status_code == 404


def test_hostile_words_are_text_on_every_page() -> None:
    played = stored_turns.played(title=HOSTILE, value=HOSTILE, result=HOSTILE + stored_turns.LONG)
    plain = stored_turns.played(
        "bob", title="words", value="words", result="words" + stored_turns.LONG
    )
    client, other = visitor(played.user), visitor(plain.user)
    for page in PAGES:
        html = fragment(client, base(played) + page).content.decode()
        tame = fragment(other, base(plain) + page).content.decode()
        assert not acting(html)
        assert [tag for tag, _ in elements(html)].count("img") == 0
        assert {(t, n) for t, a in elements(html) for n in a if n.startswith("hx-")} <= {
            (t, n) for t, a in elements(tame) for n in a if n.startswith("hx-")
        }


def test_the_timeline_tells_each_call_and_what_was_changed_between(played: Played) -> None:
    html = visitor(played.user).get(base(played)).content.decode()
    assert html.index("#3") < html.index("Reduction rejected") < html.index("Context reduced")
    assert f"{base(played)}calls/2/" in html
    assert f"/c/{played.conversation.public_id}/inspect/events/4/" in html
    assert "1.3k" in html
    assert 'role="img"' in html or "chart-plot" in html


def test_nothing_reduced_yet_says_what_will_come() -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    client = visitor(conversation.owner)
    page = fragment(client, f"/c/{conversation.public_id}/inspect/now/").content.decode()
    assert "Nothing has been reduced." in page
    assert "First reduction at" in page
    assert "you are at 120" in page


def test_a_chat_without_calls_has_an_inspector() -> None:
    turn = people_and_turns.queued(people_and_turns.person())
    url = f"/c/{turn.conversation.public_id}/inspect/"
    client = visitor(turn.conversation.owner)
    assert b"No call has been made yet" in client.get(url).content
    assert b"No call has been made yet" in fragment(client, url + "?drawer=1").content


def test_the_page_of_a_call_costs_the_same_queries_however_long_the_path_is() -> None:
    def queries(client: Client, url: str) -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get(url).status_code == 200
        return len(found)

    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    for _ in range(2):
        lease = people_and_turns.next_turn(people_and_turns.conversation_of(lease))
        people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    client, url = visitor(conversation.owner), f"/c/{conversation.public_id}/inspect/"
    pages = ("", "now/", "kinds/", "calls/3/", "calls/3/blocks/0/", "diff/2..3/")
    before = [queries(client, url + page) for page in pages]
    for _ in range(12):
        people_and_turns.answered(
            people_and_turns.next_turn(Conversation.objects.get(pk=conversation.pk))
        )
    assert [queries(client, url + page) for page in pages] == before
    assert max(before) <= 22


def test_the_request_can_be_kept_as_it_was_sent(played: Played) -> None:
    client = visitor(played.user)
    response = client.get(f"{base(played)}calls/1/request.json")
    call = played.conversation.calls.order_by("pk")[0]
    assert wire.digest(response.content.decode()) == call.body_digest
    assert response["Content-Disposition"] == 'attachment; filename="call-1.json"'
    assert response["Cache-Control"] == "no-store"
    page = client.get(f"{base(played)}calls/1/request/").content.decode()
    assert call.body_digest in page
    assert "equals the recorded digest" in page


def test_two_chosen_calls_are_compared_the_earlier_one_first(played: Played) -> None:
    client = visitor(played.user)
    for given in ("a=3&b=1", "a=1&b=3"):
        response = client.get(f"{base(played)}diff/?{given}")
        assert response["Location"] == f"{base(played)}diff/1..3/"
    for given in ("", "a=1", "a=1&b=1", "a=x&b=²", "a=1&b=99999999999999999"):
        assert client.get(f"{base(played)}diff/?{given}")["Location"] == base(played)


def test_an_answer_leads_to_the_call_that_gave_it(played: Played) -> None:
    response = visitor(played.user).get(f"{base(played)}answers/6/")
    assert response["Location"] == f"{base(played)}calls/3/"
    chat = visitor(played.user).get(f"/c/{played.conversation.public_id}/").content.decode()
    assert f"{base(played)}answers/6/" in chat
    assert "data-inspector" in chat


@pytest.mark.parametrize("page", [*PAGES, "calls/1/request.json"])
def test_a_reviewer_sees_the_same_and_each_reading_is_recorded(page: str, played: Played) -> None:
    reader = reviewer()
    client = visitor(reader)
    assert client.get(base(played) + page).status_code == 404
    assert not LogEntry.objects.exists()
    response = client.get(base(played, review=True) + page)
    assert response.status_code == 200
    (entry,) = LogEntry.objects.all()
    assert (entry.user_id, entry.action_flag) == (reader.pk, READ)
    assert entry.object_id == str(played.conversation.pk)
    html = response.content.decode()
    # Reviewers can change nothing there, and no link leads to the owner's own pages.
    assert not [tag for tag, attrs in elements(html) if attrs.get("method") == "post"]
    assert f'"/c/{played.conversation.public_id}/' not in html


def test_only_staff_with_the_permission_may_review(played: Played) -> None:
    strangers = [people_and_turns.person("eve"), reviewer("sam", may_read=False)]
    unprivileged = people_and_turns.person("may")
    unprivileged.user_permissions.add(Permission.objects.get(codename="read_content"))
    for user in (*strangers, unprivileged, played.user):
        for page in PAGES:
            assert visitor(user).get(base(played, review=True) + page).status_code == 404
    assert not LogEntry.objects.exists()
    root = people_and_turns.person("root", is_staff=True, is_superuser=True)
    assert visitor(root).get(base(played, review=True)).status_code == 200
    assert LogEntry.objects.count() == 1


def test_ones_own_conversation_is_reviewed_without_a_record(played: Played) -> None:
    User.objects.filter(pk=played.user.pk).update(is_staff=True)
    client = visitor(User.objects.get(pk=played.user.pk))
    assert client.get(base(played, review=True)).status_code == 200
    assert not LogEntry.objects.exists()


def test_a_reviewer_is_led_to_the_row_of_a_change(played: Played) -> None:
    client = visitor(reviewer())
    response = client.get(f"{base(played, review=True)}events/4/")
    row = played.conversation.transformations.get(seq=4)
    assert response["Location"] == f"/admin/conversations/transformation/{row.pk}/change/"
    assert client.get(f"{base(played, review=True)}events/3/").status_code == 404


def test_what_is_in_the_trash_is_gone_for_its_owner_and_open_for_review(played: Played) -> None:
    delete_conversation(conversation=played.conversation)
    assert visitor(played.user).get(base(played)).status_code == 404
    assert visitor(reviewer()).get(base(played, review=True)).status_code == 200


def test_a_damaged_log_is_told_and_no_page_breaks(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError(4)

    for module in ("inspector.sent_messages", "inspector.current_context", "log.rebuild"):
        monkeypatch.setattr(f"conversations.{module}.read_path", broken)
    client = visitor(played.user)
    for page in ("now/", "kinds/"):
        response = client.get(base(played) + page)
        assert response.status_code == 200
        assert b"some of it was damaged" in response.content
        assert b"KeyError" not in response.content
    for page in (
        "calls/3/",
        "calls/3/blocks/0/",
        "diff/1..3/",
        "calls/3/request/",
    ):
        response = client.get(base(played) + page)
        assert response.status_code == 200
        assert b"KeyError: 4" in response.content
    assert client.get(f"{base(played)}calls/3/request.json").status_code == 409
    gone = client.get(f"{base(played)}calls/3/gone/4/?fate=summary")
    assert gone.status_code == 200
    assert b"KeyError: 4" in gone.content


@pytest.mark.only_database("sqlite", "PostgreSQL stores no bytes that are not UTF-8")
@pytest.mark.parametrize("kind", ["prompt", "answer", "results"])
def test_a_text_that_cannot_be_decoded_breaks_no_page(kind: str, played: Played) -> None:
    row = list_messages(played.conversation, kind)[0]
    with unguarded(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_message SET content = CAST(X'5BC3FF41' AS TEXT) WHERE id = %s",
            [row.pk],
        )
    client = visitor(played.user)
    shown = {page: client.get(base(played) + page).status_code for page in PAGES}
    assert set(shown.values()) == {200}, shown


@pytest.mark.parametrize("page", ["now/", "kinds/", "calls/3/", "diff/1..3/", "calls/3/request/"])
def test_a_database_that_does_not_answer_is_not_told_as_damage(page: str, played: Played) -> None:
    client = visitor(played.user)
    client.raise_request_exception = False

    def time_out(execute: Any, sql: str, *rest: Any) -> Any:
        if 'FROM "conversations_message"' in sql:
            raise OperationalError("the database server did not answer within 12 seconds")
        return execute(sql, *rest)

    with connection.execute_wrapper(time_out):
        response = client.get(base(played) + page)
    assert response.status_code == 503
