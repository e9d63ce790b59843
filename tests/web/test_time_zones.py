"""Days and times in the zone that the browser names by its cookie; in UTC where they must be."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils import timezone

from agentweb import settings as product
from agentweb.edge.request_threads import PageHandler
from conversations.library.sidebar import name_period
from conversations.live import render
from conversations.models import Conversation, SharedLink, User
from conversations.transcript.shapes import Bookmark
from conversations.transfer.exports.page import write_page
from tests.support import people_and_turns, stored_turns
from tests.support.stored_turns import Played
from tests.web.pages import chat_path, client_of, html_of, press

TOKYO, ANGELES, KOLKATA = "Asia/Tokyo", "America/Los_Angeles", "Asia/Kolkata"
#: At each moment it is another day than in UTC in at least one of them.
FAR = ("Pacific/Kiritimati", "Etc/GMT+12")
HOSTILE = (
    "", "Asia", "asia/tokyo", "Etc/Unknown", "+09:00", "right/Asia/Tokyo", "posixrules",
    "/etc/passwd", "../../../etc/passwd", "Asia/../Asia/Tokyo", "Asia/Tokyo/", "zone.tab",
    "__init__.py", "tzdata.zi", "Asia/Tokyo\x00", "A" * 4_000, "Asia/" * 500, "Ásia/Tōkyō",
    "%2e%2e/passwd", "<script>", '"Asia/Tokyo',
)  # fmt: skip


def show_zone(_: HttpRequest) -> HttpResponse:
    return HttpResponse(timezone.get_current_timezone_name())


def fail(_: HttpRequest) -> HttpResponse:
    raise LookupError(timezone.get_current_timezone_name())


def show_together(request: HttpRequest) -> HttpResponse:
    _together.wait(timeout=60)
    return show_zone(request)


_together = threading.Barrier(6)
urlpatterns = [
    path("zone/", show_zone), path("failing/", fail), path("together/", show_together),
    path("admin/zone/", show_zone), path("api/zone/", show_zone),
]  # fmt: skip


@pytest.fixture
def _probed(settings: Any) -> None:
    """Have the addresses above, with the middleware that is about zones as the product has it."""
    settings.ROOT_URLCONF = __name__
    named = ("use_browser_zone", "TokensAlone")
    settings.MIDDLEWARE = [one for one in product.MIDDLEWARE if one.endswith(named)]


def ask(where: str, zone: str) -> str:
    # As a server decodes what a browser sends in UTF-8.
    cookie = f"a=b; time-zone={zone}".encode().decode("latin1")
    answer = Client().get(where, headers={"cookie": cookie})
    return str(answer.content.decode())


@pytest.mark.usefixtures("_probed")
@pytest.mark.parametrize("zone", [TOKYO, ANGELES, KOLKATA, "Asia/Calcutta", "UTC"])
def test_a_page_has_the_zone_of_the_browser_and_what_follows_has_not(zone: str) -> None:
    assert ask("/zone/", zone) == zone
    assert timezone.get_current_timezone_name() == "UTC"
    with pytest.raises(LookupError, match=zone):
        ask("/failing/", zone)
    assert timezone.get_current_timezone_name() == "UTC"


@pytest.mark.usefixtures("_probed")
@pytest.mark.parametrize("zone", HOSTILE)
def test_what_is_no_name_of_a_zone_counts_for_nothing(zone: str) -> None:
    assert ask("/zone/", zone) == "UTC"


@pytest.mark.usefixtures("_probed")
@pytest.mark.parametrize("where", ["/admin/zone/", "/api/zone/"])
def test_staff_and_programs_have_utc(where: str) -> None:
    assert ask(where, TOKYO) == "UTC"


@pytest.mark.usefixtures("_probed")
@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_no_zone_is_left_to_the_next_request_of_a_thread_or_to_one_beside_it() -> None:
    handler = PageHandler()
    for zone in (TOKYO, "", ANGELES, "../Tokyo", KOLKATA, "Ásia/Tōkyō"):
        wanted = zone if zone in {TOKYO, ANGELES, KOLKATA} else "UTC"
        assert await fetch(handler, "/zone/", zone) == wanted
    assert len(handler._idle) == 1, "all had one thread"
    assert timezone.get_current_timezone_name() == "UTC"
    zones = [TOKYO, "", ANGELES, "", KOLKATA, ""]
    found = await asyncio.gather(*(fetch(handler, "/together/", zone) for zone in zones))
    assert list(found) == [zone or "UTC" for zone in zones]
    assert await sync_to_async(timezone.get_current_timezone_name)() == "UTC"


async def fetch(handler: PageHandler, where: str, zone: str) -> str:
    cookie = [(b"cookie", f"time-zone={zone}".encode())] if zone else []
    scope = {"type": "http", "method": "GET", "path": where, "query_string": b"", "headers": cookie}
    client = ApplicationCommunicator(handler, scope)
    await client.send_input({"type": "http.request", "body": b""})
    assert (await client.receive_output(30))["status"] == 200
    body = (await client.receive_output(30))["body"]
    await client.wait(30)
    return str(body.decode())


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}:00+00:00")


@pytest.mark.parametrize(
    ("zone", "now", "today", "yesterday"),
    [
        # Each day's beginning, written in UTC.
        ("UTC", "2026-11-28T23:30", "2026-11-28T00:00", "2026-11-27T00:00"),
        (TOKYO, "2026-11-28T23:30", "2026-11-28T15:00", "2026-11-27T15:00"),
        (ANGELES, "2026-11-28T23:30", "2026-11-28T08:00", "2026-11-27T08:00"),
        (KOLKATA, "2026-11-28T23:30", "2026-11-28T18:30", "2026-11-27T18:30"),
        # The clocks go forward: a day of 23 hours; and back: one of 25.
        (ANGELES, "2026-03-09T06:30", "2026-03-08T08:00", "2026-03-07T08:00"),
        (ANGELES, "2026-03-09T07:00", "2026-03-09T07:00", "2026-03-08T08:00"),
        (ANGELES, "2026-11-02T07:30", "2026-11-01T07:00", "2026-10-31T07:00"),
        (ANGELES, "2026-11-02T08:00", "2026-11-02T08:00", "2026-11-01T07:00"),
    ],
)
def test_a_day_of_the_list_begins_and_ends_where_its_reader_is(
    zone: str, now: str, today: str, yesterday: str
) -> None:
    bit = timedelta(microseconds=1)
    with timezone.override(ZoneInfo(zone)):
        for at, heading in (
            (moment(now), "Today"),
            (moment(today), "Today"),
            (moment(today) - bit, "Yesterday"),
            (moment(yesterday), "Yesterday"),
            (moment(yesterday) - bit, "Previous 7 days"),
        ):
            assert name_period(at, moment(now)) == heading


@pytest.mark.parametrize(("zone", "month"), [(TOKYO, "February 2026"), (ANGELES, "January 2026")])
def test_so_does_a_month(zone: str, month: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert name_period(moment("2026-01-31T23:30"), moment("2026-11-28T23:30")) == month


@pytest.fixture
def ada() -> Played:
    return stored_turns.played()


def come_from(zone: str, user: User) -> Client:
    client = client_of(user)
    client.cookies["time-zone"] = zone
    return client


@pytest.mark.django_db
@pytest.mark.parametrize("zone", [TOKYO, ANGELES, KOLKATA])
@pytest.mark.parametrize("where", ["/c/new/", "/c/list/"])
def test_the_list_of_a_page_and_of_a_tab_that_renews_it_has_the_readers_days(
    zone: str, where: str
) -> None:
    user = people_and_turns.person()
    here = datetime.now(ZoneInfo(zone))
    midnight = datetime.combine(here.date(), time(), here.tzinfo)
    for title, at in (("early", midnight), ("late", midnight - timedelta(seconds=1))):
        row = Conversation.objects.create(owner=user, title=title, model=stored_turns.MODEL)
        Conversation.objects.filter(pk=row.pk).update(updated_at=at)
    headers = {"HX-Request": "true", "HX-Target": "rows"} if where == "/c/list/" else {}
    html = come_from(zone, user).get(where, headers=headers).content.decode()
    found = [html.index(word) for word in ("Today", ">early<", "Yesterday", ">late<")]
    assert found == sorted(found)


@pytest.mark.django_db
@pytest.mark.parametrize("zone", [*FAR, TOKYO, ANGELES])
def test_the_last_day_of_a_link_is_the_readers(zone: str, ada: Played) -> None:
    client, share = come_from(zone, ada.user), f"{chat_path(ada)}/share/"
    today = datetime.now(ZoneInfo(zone)).date()
    terms = {"audience": "people", "ends": "day"}
    assert press(client, share, **terms, day=str(today - timedelta(days=1))).status_code == 400
    assert press(client, share, **terms, day=str(today)).status_code == 302
    end = datetime.combine(today, time.max, ZoneInfo(zone))
    assert SharedLink.objects.get().expires_at == end.astimezone(UTC)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("month", "zone", "ends"),
    [
        # Nuuk's clocks change on a Saturday at midnight: its last hour is skipped, or shown twice.
        (3, "America/Nuuk", (1, 1)), (10, "America/Nuuk", (1, 2)),
        # Berlin's on the Sunday.
        (3, "Europe/Berlin", (0, 23)), (10, "Europe/Berlin", (0, 22)),
    ],
)  # fmt: skip
def test_a_link_works_until_its_last_day_is_over_when_clocks_change(
    month: int, zone: str, ends: tuple[int, int], ada: Played
) -> None:
    sunday = date(timezone.now().year + 1, month, 31)
    sunday -= timedelta(days=(sunday.weekday() + 1) % 7)
    days, hour = ends
    chosen = {"audience": "people", "ends": "day", "day": str(sunday - timedelta(days=1))}
    press(come_from(zone, ada.user), f"{chat_path(ada)}/share/", **chosen)
    end = datetime.combine(sunday, time(hour), UTC) - timedelta(days=1 - days)
    assert SharedLink.objects.get().expires_at == end - timedelta(microseconds=1)


@pytest.mark.django_db
def test_a_date_without_a_time_is_the_readers(ada: Played) -> None:
    User.objects.filter(pk=ada.user.pk).update(date_joined=moment("2026-01-31T23:30"))
    assert "Jan. 31, 2026" in html_of(client_of(ada.user), "/settings/account/")
    assert "Feb. 1, 2026" in html_of(come_from(TOKYO, ada.user), "/settings/account/")


@pytest.mark.django_db
def test_what_several_readers_share_names_no_zone_of_one_of_them(ada: Played) -> None:
    def show() -> tuple[str, str]:
        frames = render.render_snapshot(ada.conversation.pk, Bookmark(), None).html
        return frames, "".join(write_page(ada.conversation))

    plain = show()
    with timezone.override(ZoneInfo(KOLKATA)):
        assert show() == plain
    assert "UTC" in plain[1]
