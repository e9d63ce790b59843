"""Invitations: a link makes one account, once, while it is valid, and all is on record."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.admin.invitations import InvitationAdmin
from conversations.audit.verify import Tally, verify_everything
from conversations.invitations.invitations import (
    InvitationRefused,
    make_invitation,
    use_invitation,
    withdraw_invitation,
)
from conversations.models import Invitation, InvitationDecision, SecondFactorRule, User
from tests.attacks.test_guessing import wait_for_mails
from tests.support import people_and_turns
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "correct horse battery"
ADD = "/admin/conversations/invitation/add/"
LIST = "/admin/conversations/invitation/"


@pytest.fixture
def root(db: None) -> User:
    return people_and_turns.person("root", is_staff=True, is_superuser=True)


def page_of(token: str) -> str:
    return f"/accounts/invitation/{token}/"


def take(token: str, name: str = "ann", client: Client | None = None) -> Any:
    sent = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
    return (client or Client()).post(page_of(token), sent)


def is_in(client: Client) -> bool:
    return client.get("/usage/").status_code == 200


def kinds() -> list[str]:
    return list(InvitationDecision.objects.order_by("pk").values_list("kind", flat=True))


def link_in(html: str) -> str:
    found = re.search(r"http://testserver(/accounts/invitation/[\w-]+/)", html)
    assert found, html
    return found[1]


def test_a_superuser_invites_with_groups_and_the_person_gets_them(root: User) -> None:
    group = Group.objects.create(name="Buyers")
    admin = client_of(root)
    sent = {"email": "ann@example.org", "groups": [group.pk], "days": 3}
    link = link_in(admin.post(ADD, sent).content.decode())
    client = Client()
    assert b"ann@example.org" in client.get(link).content
    assert take(link.split("/")[-2], client=client)["Location"] == "/"
    assert is_in(client)
    user = User.objects.get(username="ann")
    assert (user.email, user.is_staff, [*user.groups.all()]) == ("ann@example.org", False, [group])
    assert user.check_password(PASSWORD)
    assert kinds() == ["made", "used"]
    assert InvitationDecision.objects.get(kind="made").note == "Buyers"
    assert list(verify_everything(Tally())) == []
    # The link is shown once, and stored nowhere.
    row = Invitation.objects.get()
    shown = admin.get(f"{LIST}{row.pk}/change/").content.decode()
    assert link.split("/")[-2] not in shown + str(Invitation.objects.values())
    assert row.digest not in shown
    assert "made · root (Buyers)" in shown


def test_who_is_no_superuser_gives_no_groups(root: User) -> None:
    group = Group.objects.get(name="Administrator")
    helper = people_and_turns.person("helper", is_staff=True)
    helper.groups.add(group)
    admin = client_of(helper)
    assert 'name="groups"' not in admin.get(ADD).content.decode()
    link_in(admin.post(ADD, {"email": "", "groups": [group.pk], "days": 3}).content.decode())
    assert not Invitation.objects.get().groups.exists()
    with pytest.raises(InvitationRefused, match="groups"):
        make_invitation(made_by=helper, groups=[group])
    client = client_of(people_and_turns.person("bob", is_staff=True))
    assert client.post(ADD, {"email": "", "days": 3}).status_code == 403


def test_an_invitation_is_mailed_where_mail_is_sent(root: User, settings: Any) -> None:
    settings.SENDS_MAIL = True
    shown = client_of(root).post(ADD, {"email": "ann@example.org", "days": 3}).content.decode()
    assert "It was sent to" in shown
    mails = [each for each in wait_for_mails() if each.to == ["ann@example.org"]]
    assert link_in(mails[-1].body) == link_in(shown)


def test_an_invitation_that_was_taken_back_is_not_mailed(
    root: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    settings.SENDS_MAIL = True
    monkeypatch.setattr(InvitationAdmin, "log_addition", fail)
    with pytest.raises(RuntimeError):
        client_of(root).post(ADD, {"email": "ann@example.org", "days": 3})
    assert not Invitation.objects.exists()
    assert [each for each in wait_for_mails() if each.to == ["ann@example.org"]] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, b"too old"),
        ({"withdrawn_at": timezone.now()}, b"was withdrawn"),
        ({"used_at": timezone.now()}, b"was used before"),
    ],
)
def test_a_link_that_has_ended_says_why(root: User, change: Any, words: bytes) -> None:
    row, token = make_invitation(made_by=root)
    Invitation.objects.update(**change)
    for answer in (Client().get(page_of(token)), take(token)):
        assert answer.status_code == 410
        assert words in answer.content
    assert not User.objects.filter(username="ann").exists()
    assert not withdraw_invitation(invitation=row, actor=root)
    assert kinds() == ["made"]


def test_staff_withdraw_what_is_open(root: User) -> None:
    row, token = make_invitation(made_by=root)
    admin = client_of(root)
    sent = {"action": "withdraw", "_selected_action": [row.pk]}
    assert admin.post(LIST, sent).status_code == 302
    assert b"was withdrawn" in Client().get(page_of(token)).content
    assert kinds() == ["made", "withdrawn"]


def test_the_invitations_of_who_is_no_longer_active_end(root: User) -> None:
    _, token = make_invitation(made_by=root)
    User.objects.update(is_active=False)
    assert b"was withdrawn" in take(token).content


def test_of_many_at_once_one_makes_the_account(root: User) -> None:
    _, token = make_invitation(made_by=root)
    found = people_and_turns.crowd(6, lambda at: take(token, f"ann{at}").status_code)
    assert people_and_turns.failures(found) == []
    assert sorted(map(int, found)) == [302] + [410] * 5  # type: ignore[arg-type]
    assert User.objects.filter(username__startswith="ann").count() == 1
    assert kinds() == ["made", "used"]


def test_a_name_or_an_address_that_is_taken_is_said_to_be(root: User) -> None:
    _, token = make_invitation(made_by=root, email="ann@example.org")
    assert take(token, "root").status_code == 400
    User.objects.filter(pk=root.pk).update(email="ANN@example.org")
    # Before the form is filled in, too.
    shown = Client().get(reverse("invitation", args=[token]))
    assert (shown.status_code, b"password1" in shown.content) == (410, False)
    assert b"has the address of this invitation already" in take(token).content
    with pytest.raises(InvitationRefused, match="email_taken"):
        use_invitation(token=token, username="ann", password_hash="x")
    shown = client_of(root).post(ADD, {"email": "ann@example.org", "days": 3}).content
    assert b"An account has this address already" in shown


def test_a_link_that_is_not_known_is_counted(settings: Any) -> None:
    settings.AGENTWEB_LOG_IN_ATTEMPTS_OF_ADDRESS = 3
    assert [Client().get(page_of(f"no{at}")).status_code for at in range(5)] == [404] * 3 + [
        429
    ] * 2


def test_who_is_logged_in_makes_no_second_account_by_it(root: User) -> None:
    _, token = make_invitation(made_by=root)
    client = client_of(root)
    assert b"You are logged in as root" in client.get(page_of(token)).content
    take(token, client=client)
    assert User.objects.count() == 1


def test_a_group_that_needs_a_second_factor_needs_it_of_the_new_person_too(root: User) -> None:
    group = Group.objects.create(name="Careful")
    SecondFactorRule.objects.create(group=group)
    _, token = make_invitation(made_by=root, groups=[group])
    client = Client()
    take(token, client=client)
    assert client.get("/usage/")["Location"] == "/settings/security/"


def test_an_operator_invites_by_a_command() -> None:
    Group.objects.create(name="Buyers")
    told = StringIO()
    call_command(
        "invite", "--email", "ann@example.org", "--group", "Buyers", "--site",
        "http://testserver/", stdout=told,
    )  # fmt: skip
    assert take(link_in(told.getvalue()).split("/")[-2]).status_code == 302
    assert User.objects.get(username="ann").groups.get().name == "Buyers"
    assert InvitationDecision.objects.get(kind="made").actor is None
    for wrong in (
        ["--group", "no"], ["--days", "99"], ["--email", "no"], ["--site", "chat.example.org"],
    ):  # fmt: skip
        with pytest.raises(CommandError):
            call_command("invite", *wrong)
    with pytest.raises(CommandError, match="has the address"):
        call_command("invite", "--email", "Ann@example.org")
