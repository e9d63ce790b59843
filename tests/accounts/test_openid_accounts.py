"""Whose account a log-in by a provider opens, and who has the last word about it."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.utils import timezone

from conversations.accounts.openid_providers import find_openid_provider, sync_groups
from conversations.accounts.people import change_email
from conversations.models import Crossing, User
from conversations.models.periods import compute_bounds
from tests.accounts.test_openid import ANN, is_in, log_in, provider, refused, running, server
from tests.support import people_and_turns
from tests.support.budget_rows import group, member, site
from tests.support.openid_server import OpenIdServer
from tests.web.pages import client_of
from tests.web.test_admin_people import form as user_form

__all__ = ["running", "server"]
pytestmark = pytest.mark.django_db


def test_an_address_that_is_not_verified_gives_nobody_a_later_log_in(
    server: OpenIdServer, settings: Any
) -> None:
    settings.LOG_IN_PROVIDERS = [provider(server, links_verified_email=True)]
    server.put_person("s-2", ANN | {"email_verified": False, "preferred_username": "mallory"})
    thief, ann = Client(), Client()
    log_in(server, thief, "s-2")
    assert is_in(thief)
    assert User.objects.get(username="mallory").email == ""
    log_in(server, ann)
    assert User.objects.get(username="ann").email == ANN["email"]
    assert SocialAccount.objects.values("user").distinct().count() == 2


@pytest.mark.parametrize("address", ["ann@ſtage.example", "dıana@example.org"])
def test_an_address_that_only_looks_like_the_verified_one_is_not_linked(
    address: str, server: OpenIdServer, settings: Any
) -> None:
    """PostgreSQL takes dotless and long letters for the usual ones where case is ignored."""
    settings.LOG_IN_PROVIDERS = [provider(server, links_verified_email=True, new_accounts=False)]
    server.put_person("s-1", ANN | {"email": address})
    plain = address.replace("ſ", "s").replace("ı", "i")
    local = people_and_turns.person("local", email=plain)
    client = Client()
    log_in(server, client)
    assert not is_in(client)
    assert User.objects.get() == local
    assert not SocialAccount.objects.exists()


def test_an_address_that_was_given_up_is_free_for_somebody_else(server: OpenIdServer) -> None:
    log_in(server, Client())
    assert not EmailAddress.objects.exists()
    change_email(user_id=User.objects.get().pk, address="new@example.org", peer="")
    server.put_person("s-2", ANN | {"preferred_username": "other"})
    client = Client()
    log_in(server, client, "s-2")
    assert is_in(client)
    assert User.objects.get(username="other").email == ANN["email"]


def test_an_administrator_who_closes_an_account_anew_has_the_last_word(
    server: OpenIdServer,
) -> None:
    root = client_of(people_and_turns.person("root", is_staff=True, is_superuser=True))
    log_in(server, Client())
    server.put_person("s-1", ANN | {"groups": []})
    log_in(server, Client())
    user = User.objects.get(username="ann")
    page = f"/admin/conversations/user/{user.pk}/change/"
    assert root.post(page, user_form(user)).status_code == 302
    assert root.post(page, user_form(user, is_active="")).status_code == 302
    server.put_person("s-1", ANN)
    client = Client()
    assert refused(log_in(server, client), client, "closed by an administrator")


def test_groups_are_those_of_the_row_and_not_of_what_a_caller_holds(
    server: OpenIdServer, settings: Any
) -> None:
    settings.LOG_IN_PROVIDERS = [provider(server, groups={"staff-eu": "Reviewer"})]
    log_in(server, Client())
    held = User.objects.get()
    User.objects.update(is_superuser=True)
    found = find_openid_provider("office")
    assert found
    sync_groups(found, held, {"groups": []})
    # Since made a superuser, whose staff status is no provider's.
    assert User.objects.get().is_staff
    User.objects.update(is_superuser=False)
    sync_groups(found, held, {"groups": []})
    assert not User.objects.get().is_staff
    # What the caller has in hand changes only when it is read again.
    assert held.is_staff


def test_who_is_moved_to_another_group_is_told_of_no_limit_in_between(settings: Any) -> None:
    settings.LOG_IN_PROVIDERS = [
        {"id": "office", "name": "Office", "server": "https://id.example.org", "client_id": "x",
         "groups": {"a": "First", "b": "Second"}},
    ]  # fmt: skip
    user, found = member("First"), find_openid_provider("office")
    assert found
    small, first, second = site(50), group("First", 100), group("Second", 80)
    starts, ends = compute_bounds("month", "UTC", timezone.now())
    first.windows.create(user=user, starts_at=starts, ends_at=ends, spent=60, limit=100)
    sync_groups(found, user, {"groups": ["b"]})
    assert [one.name for one in user.groups.all()] == ["Second"]
    assert not small.windows.exists()
    # As before, and as from then on.
    passed = Crossing.objects.order_by("pk").values_list("window__budget", "percent")
    assert set(passed) == {(first.pk, 50), (second.pk, 50)}
    sync_groups(found, user, {"groups": []})
    assert Crossing.objects.filter(window__budget=small.pk, percent=100).exists()
