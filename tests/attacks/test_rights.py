"""Who changes the rights of accounts, and the accounts of those who have all rights."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from conversations.models import User
from tests.attacks.test_matrix import client_of

pytestmark = pytest.mark.django_db


def test_rights_are_changed_by_superusers_alone() -> None:
    """By a person with every permission that there is."""
    boss = User.objects.create(username="boss", is_staff=True, email="boss@example.org")
    boss.user_permissions.set(Permission.objects.all())
    client, other = client_of(boss), User.objects.create(username="eve", email="e@example.org")
    posted = {
        "username": "eve", "email": "mine@example.org", "is_active": "on", "is_staff": "on",
        "is_superuser": "on", "groups": [str(Group.objects.get(name="Auditor").pk)],
        "user_permissions": [str(Permission.objects.get(codename="read_content").pk)],
        "password": "pbkdf2_sha256$1$a$b", "password1": "a-new-one-4711", "usable_password": "true",
        **no_inlines(client, other),
    }  # fmt: skip
    for user in (other, boss):
        url = reverse("admin:conversations_user_change", args=[user.pk])
        assert client.post(url, posted | {"username": user.username}).status_code in (200, 302)
        was, _ = User.objects.get(pk=user.pk), user.refresh_from_db()
        assert not was.is_superuser
        assert not was.groups.exists()
        assert was.email == {"eve": "e@example.org", "boss": "boss@example.org"}[was.username]
    assert not other.is_staff
    assert not other.user_permissions.exists()
    assert other.password == ""


def test_who_has_all_rights_is_within_reach_of_superusers_alone() -> None:
    """Also one who may not use the admin, whose account would be a way to all rights."""
    boss = User.objects.create(username="boss", is_staff=True)
    boss.user_permissions.set(Permission.objects.all())
    root = User.objects.create(username="root", is_superuser=True, email="root@example.org")
    client = client_of(boss)
    change = reverse("admin:conversations_user_change", args=[root.pk])
    assert client.get(change).status_code == 200
    assert b'name="username"' not in client.get(change).content
    posted = {"username": "mine", "is_active": "", **no_inlines(client, root)}
    assert client.post(change, posted).status_code == 403
    delete = reverse("admin:conversations_user_delete", args=[root.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    listed = {"action": "delete_selected", "_selected_action": [str(root.pk)], "post": "yes"}
    client.post(reverse("admin:conversations_user_changelist"), listed)
    for page in ("user_reset_link", "user_lost_factors", "user_exempt"):
        assert client.post(reverse(f"admin:{page}", args=[root.pk])).status_code == 403
    found = User.objects.get(pk=root.pk)
    assert (found.username, found.is_active, found.email) == ("root", True, "root@example.org")


def no_inlines(client: Client, user: User) -> dict[str, str]:
    """Return the management forms of a person's page, as the page has them."""
    page = client.get(reverse("admin:conversations_user_change", args=[user.pk])).content.decode()
    found = re.findall(r'name="([\w-]+-(?:TOTAL|INITIAL)_FORMS)" value="(\d+)"', page)
    return dict(found)
