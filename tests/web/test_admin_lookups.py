"""Admin lists accept only the look-ups they show: no other reads a field letter by letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import islice
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from conversations.models import User
from tests.support.one_database import ON_SQLITE
from tests.support.stored_turns import played
from tests.web.canary import CONTENT, plant
from tests.web.pages import client_of
from tests.web.test_admin_review import staff

pytestmark = [pytest.mark.django_db, ON_SQLITE]
ENDINGS = ("", "__contains", "__startswith", "__regex", "__gt", "__isnull", "__length")
#: Most relations that a look-up follows.
DEPTH = 2
LINK = re.compile(r'href="(/[^"#]*\?[^"#]*)"')


def field_paths(kind: type[Model], depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    """Yield each field that a table can be looked up by, over relations in both directions."""
    for field in kind._meta.get_fields():
        if field.is_relation and field.related_model is not None and depth:
            name = getattr(field, "name", "")
            for path, end in field_paths(field.related_model, depth - 1):  # type: ignore[arg-type]
                yield f"{name}__{path}", end
        elif not field.is_relation:
            yield field.name, field


def address_of(kind: type[Model]) -> str:
    return reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_changelist")


def test_no_list_takes_a_look_up_of_content() -> None:
    """By every path of at most two relations: refused, or not used for a look-up."""
    asked = 0
    for kind, shown in admin.site._registry.items():
        for path, field in field_paths(kind):
            for ending in ENDINGS:
                is_content = f"{field.model.__name__}.{field.name}" in CONTENT
                asked += 1
                if is_content:
                    assert not shown.lookup_allowed(f"{path}{ending}", "x", None), (kind, path)
    assert asked > 10_000


@pytest.mark.parametrize("kind", list(admin.site._registry), ids=lambda kind: kind.__name__)
def test_what_a_list_does_not_show_is_a_bad_request(kind: Any) -> None:
    conversation = played().conversation
    plant(conversation)
    client = staff("viewer")
    texts = [
        path for path, field in field_paths(kind, 1) if field.get_internal_type() == "TextField"
    ]
    for path in [*texts[:8], "pk__gt"]:
        response = client.get(address_of(kind), {f"{path}__contains": "Qx"})
        assert response.status_code == 400, path


def test_every_look_up_that_a_page_links_is_taken() -> None:
    plant(played().conversation)
    root = client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))
    seen: set[str] = set()
    for kind in admin.site._registry:
        pages = [address_of(kind)]
        for row in islice(kind._default_manager.order_by("-pk"), 2):
            name = f"admin:{kind._meta.app_label}_{kind._meta.model_name}_change"
            pages.append(reverse(name, args=[row.pk]))
        for page in pages:
            text = root.get(page).content.decode()
            seen.update(unescape(link) for link in LINK.findall(text) if "/admin/" in link)
    taken = {link.partition("?")[0] for link in seen}
    assert len(taken) > 8
    for link in sorted(seen):
        assert root.get(link).status_code in (200, 302), link


def superuser() -> User:
    return User.objects.create(username="root", is_staff=True, is_superuser=True)


def manager() -> Client:
    """Return a client of a staff member whom Django allows to change people and groups."""
    user = User.objects.create(username="boss", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__model__in=("user", "group")))
    return client_of(user)


def test_only_a_superuser_changes_groups() -> None:
    group = Group.objects.create(name="readers")
    client = manager()
    change = reverse("admin:auth_group_change", args=[group.pk])
    assert client.get(change).status_code == 200
    every = [str(key) for key in Permission.objects.values_list("pk", flat=True)]
    assert client.post(change, {"name": "all", "permissions": every}).status_code == 403
    assert client.post(reverse("admin:auth_group_add"), {"name": "new"}).status_code == 403
    assert client.post(reverse("admin:auth_group_delete", args=[group.pk]), {}).status_code == 403
    assert not group.permissions.exists()
    root = client_of(superuser())
    assert root.post(change, {"name": "all", "permissions": every}).status_code == 302
    assert group.permissions.count() == len(every)


def test_nobody_sets_the_password_of_another_person() -> None:
    ada = User.objects.create_user("ada", password="one two three")
    word = "four-five-six-seven"
    page = reverse("admin:auth_user_password_change", args=[ada.pk])
    posted = {"usable_password": "true", "password1": word, "password2": word}
    for client in (manager(), client_of(superuser())):
        assert client.get(page).status_code == client.post(page, posted).status_code == 403
        change = client.get(reverse("admin:conversations_user_change", args=[ada.pk]))
        assert "password/" not in change.content.decode().partition('id="user_form"')[2]
    ada.refresh_from_db()
    assert ada.check_password("one two three")
