"""A link to a new password by a superuser: mailed, or shown once; on record; never for others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client

from conversations.models import AccountEvent, User
from tests.attacks.test_guessing import NEW, PASSWORD, ada, attempt, wait_for_mails
from tests.support import people_and_turns
from tests.web.pages import client_of

__all__ = ["ada"]
pytestmark = pytest.mark.django_db(transaction=True)
LINK = re.compile(r"http://testserver(/accounts/reset/[\w-]+/[\w-]+/)")


@pytest.fixture
def root(db: None) -> Client:
    return client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))


def page_of(user: User) -> str:
    return f"/admin/conversations/user/{user.pk}/reset-link/"


def set_password(link: str) -> Client:
    client = Client()
    sent = {"new_password1": NEW, "new_password2": NEW}
    assert client.post(client.get(link)["Location"], sent).status_code == 302
    return client


def test_without_mail_the_link_is_shown_once_and_on_record(root: Client, ada: User) -> None:
    assert page_of(ada).encode() in root.get(f"/admin/conversations/user/{ada.pk}/change/").content
    asked = root.get(page_of(ada)).content.decode()
    assert "shown to you, once" in asked
    assert not LINK.search(asked)
    assert not AccountEvent.objects.exists()
    shown = LINK.search(root.post(page_of(ada)).content.decode())
    assert shown
    assert attempt(set_password(shown[1]), NEW).status_code == 302
    assert b"used before" in Client().get(shown[1]).content
    assert [each.kind for each in AccountEvent.objects.order_by("pk")] == [
        "reset_made", "password_reset",
    ]  # fmt: skip
    entry = LogEntry.objects.get(object_id=str(ada.pk))
    assert (entry.user.get_username(), entry.change_message) == (
        "root", "Made a link to a new password",
    )  # fmt: skip


def test_where_mail_is_sent_the_link_is_mailed_and_shown_to_nobody(
    root: Client, ada: User, settings: Any
) -> None:
    settings.SENDS_MAIL = True
    answer = root.post(page_of(ada)).content.decode()
    assert "is shown to nobody" in answer
    assert not LINK.search(answer)
    (told,) = wait_for_mails()
    assert told.to == ["ada@example.org"]
    found = LINK.search(told.body)
    assert found
    assert attempt(set_password(found[1]), NEW).status_code == 302


def test_only_superusers_make_one(ada: User) -> None:
    helper = people_and_turns.person("helper", is_staff=True)
    helper.groups.add(Group.objects.get(name="Administrator"))
    client = client_of(helper)
    page = client.get(f"/admin/conversations/user/{ada.pk}/change/").content
    assert page_of(ada).encode() not in page
    for method in (client.get, client.post):
        assert method(page_of(ada)).status_code == 403
    assert not AccountEvent.objects.exists()
    assert attempt(Client(), PASSWORD).status_code == 302


def test_an_account_without_a_password_gets_none_by_it(root: Client, ada: User) -> None:
    ada.set_unusable_password()
    ada.save()
    idle = people_and_turns.person("idle", is_active=False)
    for user in (ada, idle):
        answer = root.post(page_of(user)).content.decode()
        assert "This account has no password" in answer
        assert not LINK.search(answer)
    assert not AccountEvent.objects.exists()
    assert root.get("/admin/conversations/user/nobody/reset-link/").status_code == 404
