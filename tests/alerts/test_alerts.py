"""Alerts: each receiver is told once, by real mail and signed webhooks, or it is seen why not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import Iterator
from datetime import timedelta
from email import message_from_bytes, policy
from typing import Any

import pytest
from django.utils import timezone

from conversations.accounts.account_mail import send_account_mail
from conversations.alerts import outbox
from conversations.alerts.alert_settings import save_alert
from conversations.alerts.webhook import check_webhook_url, sign
from conversations.budgets.own_limit import set_own_limit
from conversations.models import AlertDelivery, Budget, BudgetAlert, Crossing, User
from conversations.toolbox.secrets import unseal
from tests.support import people_and_turns, stored_turns
from tests.support.alert_rows import alert, crossed, make_due, sweep
from tests.support.budget_rows import group, play, site
from tests.support.fake_mail import SmtpSink
from tests.support.webhook_receiver import Receiver, receiving
from tools.framework.errors import AddressRefusedError

pytestmark = pytest.mark.django_db(transaction=True)
DOLLAR = 1_000_000


@pytest.fixture
def sink(settings: Any) -> SmtpSink:
    """A real SMTP server, which the site sends its mail to."""
    sink = SmtpSink(ssl.create_default_context(), is_starttls=True).start_in_thread()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    return sink


@pytest.fixture
def hook(settings: Any) -> Iterator[Receiver]:
    with receiving() as receiver:
        settings.AGENTWEB_ALERT_PRIVATE_HOSTS = (receiver.address,)
        yield receiver


def person(name: str, **fields: Any) -> User:
    return people_and_turns.person(name, email=f"{name}@corp.example", **fields)


def mails(sink: SmtpSink) -> dict[str, str]:
    """Return the texts of mails with their subjects, by their recipients."""
    found = {}
    for taken in sink.taken:
        read = message_from_bytes(taken.data, policy=policy.default)
        found[str(read["To"])] = f"{read['Subject']}\n{read.get_content()}"
    return found


def states() -> list[tuple[str, int, str]]:
    rows = AlertDelivery.objects.order_by("pk")
    return list(rows.values_list("state", "attempts", "last_error"))


def verify_as_specified(row: BudgetAlert, posted: tuple[dict[str, str], bytes]) -> None:
    """Check a signature by the steps of the Standard Webhooks specification."""
    headers, body = posted
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(unseal(row.sealed_secret).removeprefix("whsec_"))
    made = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{made}"
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 300


def test_a_signature_is_that_of_the_published_vector() -> None:
    secret, at = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330
    made = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_receiver_is_told_of_each_crossing_once(sink: SmtpSink, hook: Receiver) -> None:
    boss, officer = person("boss", is_staff=True), person("otto", preferences={"language": "de"})
    first = alert(boss, officer, url=hook.url, from_percent=50, name="Money")
    alert(boss, from_percent=90)
    budget = site(100 * DOLLAR, kind="per_member", time_zone="Europe/Vienna")
    ada = person("ada")
    crossing = crossed(budget, 80, ada)
    crossed(budget, 20, ada)
    assert sweep() == 3
    assert sweep() == 0
    assert [state for state, *_ in states()] == ["sent"] * 3
    told = mails(sink)
    assert told.keys() == {"boss@corp.example", "otto@corp.example"}
    assert "$80.00 of $100.00 is spent: 80 %." in told["boss@corp.example"]
    assert (
        f"https://chat.example/admin/conversations/budget/{budget.pk}"
        in (told["boss@corp.example"])
    )
    assert "agentweb: 80 % eines Budgets sind ausgegeben: ada" in told["otto@corp.example"]
    assert "/admin/" not in told["otto@corp.example"]
    ((headers, body),) = hook.posted
    verify_as_specified(first, (headers, body))
    sent = json.loads(body)
    assert headers["webhook-id"] == sent["id"]
    assert headers["content-type"] == "application/json"
    window = crossing.window
    assert {name: sent[name] for name in ("kind", "person", "group", "percent", "spent")} == {
        "kind": "percent_passed", "person": "ada", "group": None, "percent": 80,
        "spent": 80 * DOLLAR,
    }  # fmt: skip
    assert (sent["limit"], sent["unit"], sent["scope"]) == (100 * DOLLAR, "micro-dollars", "site")
    assert sent["window"] == {
        "period": "month", "starts_at": window.starts_at.isoformat(),
        "ends_at": window.ends_at.isoformat() if window.ends_at else None,
        "time_zone": "Europe/Vienna",
    }  # fmt: skip
    crossed(budget, 95, ada)
    assert sweep() == 3
    assert len(sink.taken) == 4


def test_percents_that_one_call_passes_are_told_of_once_and_own_limits_not(sink: SmtpSink) -> None:
    alert(person("boss"), from_percent=50)
    ada = person("ada")
    budget = site(100 * DOLLAR, kind="per_member")
    for percent in (50, 80, 95):
        crossed(budget, percent, ada, spent=97)
    set_own_limit(user=ada, text="20")
    crossed(Budget.objects.get(kind="own"), 80, ada)
    assert sweep() == 1
    assert "$97.00 of $100.00 is spent: 95 %." in mails(sink)["boss@corp.example"]
    assert sweep() == 0


def test_a_spent_limit_is_told_of_whatever_the_budget_names(sink: SmtpSink) -> None:
    boss = person("boss")
    alert(boss, from_percent=100)
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    cost = play(lease)
    budget = people_and_turns.limited(user, 10 * cost + 10**6, soft_percents="")
    call = people_and_turns.opened(lease)
    type(budget).objects.filter(pk=budget.pk).update(limit=1)
    stored_turns.close(lease, call.call, people_and_turns.complete())
    assert list(Crossing.objects.values_list("percent", flat=True)) == [100]
    assert sweep() == 1
    assert "100 % of a budget is spent" in mails(sink)["boss@corp.example"]


def test_what_fails_twice_is_repeated_with_the_same_id(settings: Any) -> None:
    with receiving(500, 302, 200) as hook:
        settings.AGENTWEB_ALERT_PRIVATE_HOSTS = (hook.address,)
        row = alert(url=hook.url)
        crossed(group("buyers", DOLLAR, kind="pool"), 95)
        pauses = []
        for _ in range(3):
            assert sweep() == 1
            assert sweep() == 0
            found = AlertDelivery.objects.get()
            pauses.append(found.next_try_at - timezone.now())
            if found.state == "waiting":
                assert found.last_error in (
                    "The receiver answered with status 500.",
                    "The receiver answered with status 302.",
                )
            make_due()
        assert states() == [("sent", 3, "")]
        assert pauses[0] < timedelta(minutes=2) < pauses[1] < timedelta(minutes=6) < pauses[2]
        assert len({headers["webhook-id"] for headers, _ in hook.posted}) == 1
        assert len({body for _, body in hook.posted}) == 1
        for posted in hook.posted:
            verify_as_specified(row, posted)
        assert json.loads(hook.posted[0][1])["group"] == "buyers"


def test_what_is_never_taken_is_given_up_after_a_day_and_may_be_sent_again(
    settings: Any, sink: SmtpSink
) -> None:
    sink.unknown = frozenset({"boss@"})
    with receiving(503) as hook:
        settings.AGENTWEB_ALERT_PRIVATE_HOSTS = (hook.address,)
        alert(person("boss"), url=hook.url)
        crossed(site(DOLLAR, kind="pool"), 80)
        for _ in outbox.PAUSES:
            assert {state for state, *_ in states()} <= {"waiting"}
            assert sweep() == 2
            make_due()
        assert sweep() == 0
        assert [(state, attempts) for state, attempts, _ in states()] == [("given_up", 8)] * 2
        assert sum(outbox.PAUSES[:-1], timedelta()) < timedelta(days=1)
        assert {error for *_, error in states()} == {
            "The mail server did not take it (SMTPRecipientsRefused).",
            "The receiver answered with status 503.",
        }
        sink.unknown, hook.statuses = frozenset(), [200]
        assert outbox.send_again(AlertDelivery.objects.all()) == 2
        assert sweep() == 2
    assert [(state, attempts) for state, attempts, _ in states()] == [("sent", 1)] * 2
    assert outbox.send_again(AlertDelivery.objects.all()) == 0


def test_many_sweeps_at_once_send_each_once(hook: Receiver, sink: SmtpSink) -> None:
    people = [person(f"p{at}") for at in range(3)]
    alert(*people, url=hook.url, from_percent=50)
    budget = site(DOLLAR, kind="pool")
    for percent in (50, 80, 95):
        crossed(budget, percent)
    found = people_and_turns.crowd(4, lambda _: sweep())
    assert people_and_turns.failures(found) == []
    while sweep():
        pass
    assert [state for state, *_ in states()] == ["sent"] * 12
    assert sorted(json.loads(body)["percent"] for _, body in hook.posted) == [50, 80, 95]
    assert len(sink.taken) == 9


def test_what_a_dead_process_claimed_is_tried_again(hook: Receiver) -> None:
    alert(url=hook.url)
    crossed(site(DOLLAR, kind="pool"), 80)
    outbox.queue_crossings()
    (claimed,) = outbox.claim_deliveries()
    assert sweep() == 0
    make_due()
    assert sweep() == 1
    assert states() == [("sent", 2, "")]
    AlertDelivery.objects.filter(pk=claimed).update(state="waiting", attempts=8)
    make_due()
    assert sweep() == 0
    assert states() == [("given_up", 8, outbox.NOT_KNOWN)]


def test_an_alert_tells_of_its_own_budgets_since_it_is_active(hook: Receiver) -> None:
    ours, theirs = group("ours", DOLLAR), group("theirs", DOLLAR)
    ada = person("ada")
    crossed(ours, 80, ada)
    alert(url=hook.url, name="of one", budget=theirs)
    alert(url=hook.url, name="of a group", group=ours.group)
    alert(url=hook.url, name="all", from_percent=96)
    off = alert(url=hook.url, name="off", is_active=False)
    crossed(ours, 95, ada)
    crossed(theirs, 95, ada)
    crossed(theirs, 100, ada)
    sweep()
    told = sorted((json.loads(body)["alert"], json.loads(body)["percent"], json.loads(body)["kind"])
                  for _, body in hook.posted)  # fmt: skip
    assert told == [
        ("all", 100, "limit_reached"), ("of a group", 95, "percent_passed"),
        ("of one", 95, "percent_passed"), ("of one", 100, "limit_reached"),
    ]  # fmt: skip
    off.is_active = True
    save_alert(alert=off, origin="")
    assert sweep() == 0


def test_what_nobody_is_to_hear_any_more_is_given_up_at_once(sink: SmtpSink) -> None:
    gone, left, mute, other = (person(name) for name in ("gone", "left", "mute", "other"))
    row, second = alert(gone, left, mute), alert(other, url="https://a.example")
    crossed(site(DOLLAR, kind="pool"), 80)
    outbox.queue_crossings()
    User.objects.filter(pk=gone.pk).update(is_active=False)
    User.objects.filter(pk=mute.pk).update(email="")
    row.people.remove(left)
    second.delete()
    assert sweep() == 5
    assert not sink.taken
    assert sorted(states()) == [
        ("given_up", 1, "The alert was switched off or deleted."),
        ("given_up", 1, "The alert was switched off or deleted."),
        ("given_up", 1, "The person is no longer one that is told."),
        ("given_up", 1, "The person is no longer one that is told."),
        ("waiting", 1, "The person has no e-mail address."),
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "ftp://example.com/", "https://u:p@example.com/", "https:///x",
        "nonsense", "http://127.0.0.1:1/",
    ],
)  # fmt: skip
def test_an_address_that_may_not_be_used_is_refused(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        check_webhook_url(url)


def test_a_receiver_in_an_internal_network_gets_nothing(
    hook: Receiver, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    inside = hook.url.replace("http:", "https:")
    for url in (hook.url, inside, "https://169.254.169.254/latest", "https://[::1]/x"):
        alert(url=url)
    closed = alert(url=inside)
    BudgetAlert.objects.filter(pk=closed.pk).update(sealed_secret="gAAAAnonsense")
    settings.AGENTWEB_ALERT_PRIVATE_HOSTS = ()
    crossed(site(DOLLAR, kind="pool"), 80)
    assert sweep() == 5
    assert hook.posted == []
    refused = "The address is refused: it is not on the public internet, or not https."
    errors = [error for *_, error in states()]
    assert errors == [refused] * 4 + ["The secret of the webhook cannot be opened."]
    assert "tell-nobody" not in caplog.text


def test_what_was_sent_long_ago_is_forgotten(hook: Receiver) -> None:
    alert(url=hook.url)
    crossed(site(DOLLAR, kind="pool"), 80)
    sweep()
    assert outbox.forget_deliveries() == 0
    AlertDelivery.objects.update(created_at=timezone.now() - outbox.KEPT_FOR)
    assert outbox.forget_deliveries() == 1
    Crossing.objects.get()


def test_a_mail_to_an_account_that_cannot_be_written_is_in_the_log(
    sink: SmtpSink, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.DEFAULT_FROM_EMAIL = "Chat, Inc. <chat@example.org>"
    sending = send_account_mail(to="ada@corp.example", subject="A link", text="It is secret.")
    assert sending is not None
    assert sending.exception(60) is None
    assert (sink.taken, caplog.messages) == ([], ["a mail to an account was not sent: ValueError"])
