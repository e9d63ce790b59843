"""The API: figures for whoever has a token; described exactly; whole, a page at a time."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from jsonschema import Draft202012Validator

from conversations.accounts import api_tokens
from conversations.accounts.api_tokens import SCOPES
from conversations.models import (
    AccountEvent,
    ApiToken,
    User,
)
from conversations.web.api import token_check
from conversations.web.api.endpoints import ENDPOINTS
from conversations.web.streamed_downloads import MOST_AT_ONCE, _running
from tests.attacks.sites import views
from tests.support import people_and_turns
from tests.support.api_requests import (
    V1,
    ask,
    check_against,
    described,
    played,
    refused,
    whole,
)
from tests.support.api_tokens import token_of
from tests.web.pages import client_of
from tests.web.test_admin_review import superuser

pytestmark = pytest.mark.django_db
README = Path(__file__).resolve().parents[2] / "conversations" / "web" / "api" / "README.md"


@pytest.fixture
def root() -> User:
    superuser()
    return User.objects.get(is_superuser=True)


# What is described, and what there is.


def test_the_description_has_the_addresses_that_there_are_and_the_readme_their_table() -> None:
    document, found = described(), {view.route for view in views() if view.is_api}
    known = {f"api/v1{path}" for path in document["paths"]}
    assert found - known == {"api/v1/openapi.json", "api/", "api/<path:rest>"}
    assert known <= found
    Draft202012Validator.check_schema({"$defs": document["components"]["schemas"]})
    lines = re.findall(
        r"^\| `(\w+)` \| `(\w+)` \| .* \| (.*) \|$", README.read_text("utf-8"), re.MULTILINE
    )
    assert lines == [
        (each.name, each.scope, ", ".join(f"`{one.name}`" for one in each.parameters))
        for each in ENDPOINTS
    ]
    assert {each.scope for each in ENDPOINTS} == set(SCOPES)


def test_every_answer_is_as_described_in_each_of_its_forms(root: User) -> None:
    played()
    secret = token_of(root, *SCOPES)
    for endpoint in ENDPOINTS:
        query = {"person": "ada"} if endpoint.name == "budgets" else {}
        response = ask(secret, endpoint.name, **query)
        check_against(f"{endpoint.name}_page", response.json())
        found, names = response.json()["rows"], [field.name for field in endpoint.fields]
        assert found
        lines = whole(secret, f"{endpoint.name}.jsonl", **query).splitlines()
        assert [json.loads(line) for line in lines] == found
        table = list(csv.DictReader(io.StringIO(whole(secret, f"{endpoint.name}.csv", **query))))
        assert [list(row) for row in table] == [names] * len(found)
        for row, cells in zip(found, table, strict=True):
            assert [*row] == names
            shown = {name: "" if value is None else str(value) for name, value in row.items()}
            assert {k: v.removeprefix("'") for k, v in cells.items()} == shown


# Who asks.


def test_without_a_token_that_works_nothing_is_said(root: User) -> None:
    usual = token_of(root, *SCOPES)
    ended = timezone.now() - timedelta(seconds=1)
    gone = people_and_turns.person("gone", is_superuser=True, is_active=False)
    bad = [
        token_of(root, *SCOPES, expires_at=ended), token_of(root, *SCOPES, revoked_at=ended),
        token_of(gone, *SCOPES), usual[:-1], usual + "x", usual.upper(), "x" * 999, "a b", "\u00e4",
    ]  # fmt: skip
    for secret in bad:
        response = ask(secret, "ledger")
        refused(response, 401)
        assert 'error="invalid_token"' in response["WWW-Authenticate"]
    response = Client().get(V1 + "ledger")
    refused(response, 401)
    assert response["WWW-Authenticate"] == 'Bearer realm="agentweb"'
    for header in (f"Basic {usual}", usual, f"Bearer  {usual},{usual}", "Bearer "):
        refused(Client().get(V1 + "ledger", headers={"Authorization": header}), 401)
    refused(Client().get(f"{V1}ledger?token={usual}&access_token={usual}"), 401)
    assert ask(usual, "ledger").status_code == 200


def test_no_session_counts_at_the_api_and_no_token_elsewhere(root: User) -> None:
    client, secret = client_of(root), token_of(root, *SCOPES)
    response = client.get(V1 + "ledger")
    refused(response, 401)
    assert not response.cookies
    header = {"Authorization": f"Bearer {secret}"}
    for path in ("/c/new/", "/usage/", "/admin/", "/admin/spending.csv"):
        assert Client().get(path, headers=header).status_code == 302
    both = client.get(V1 + "ledger", headers=header)
    assert both.status_code == 200
    assert not both.cookies
    assert client.get("/c/new/").status_code == 200


def test_a_token_has_its_scopes_and_no_more_than_its_owner_has_now() -> None:
    officer = people_and_turns.person("officer", is_staff=True)
    role = Group.objects.get(name="Budget officer")
    officer.groups.add(role)
    secret = token_of(officer, "ledger", "reductions")
    assert ask(secret, "ledger").status_code == 200
    for path in ("usage", "reductions", "spending.csv"):
        response = ask(secret, path)
        refused(response, 403)
        assert 'error="insufficient_scope"' in response["WWW-Authenticate"]
    officer.groups.remove(role)
    refused(ask(secret, "ledger"), 403)
    officer.groups.add(role)
    assert ask(secret, "ledger").status_code == 200
    # The provider, or a superuser, takes the staff status alone.
    User.objects.filter(pk=officer.pk).update(is_staff=False)
    refused(ask(secret, "ledger"), 403)


def test_a_token_that_asks_too_often_waits_for_the_next_minute(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_tokens, "MOST_A_MINUTE", 2)
    token_of(root, *SCOPES)
    row, at = ApiToken.objects.get(), timezone.now().replace(second=50, microsecond=0)
    for _ in range(2):
        api_tokens.count_request(row, at)
    with pytest.raises(api_tokens.TokenThrottled) as waits:
        api_tokens.count_request(row, at + timedelta(seconds=1))
    assert waits.value.seconds == 9
    api_tokens.count_request(row, at + timedelta(seconds=10))
    row.refresh_from_db()
    assert (row.requests, row.last_used_at) == (1, at + timedelta(seconds=10))


def test_a_throttled_request_says_when_to_come_back(
    root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_tokens, "MOST_A_MINUTE", 0)
    secret = token_of(root, "ledger")
    # The first of a minute is always counted.
    ApiToken.objects.update(minute=timezone.now().replace(second=0, microsecond=0))
    response = ask(secret, "ledger")
    if response.status_code == 200:
        # The minute has just ended.
        response = ask(secret, "ledger")
    refused(response, 429)
    assert 0 < int(response["Retry-After"]) <= 60


def test_another_file_waits_for_those_that_are_on_their_way(root: User) -> None:
    secret = token_of(root, "ledger")
    _running[root.pk] = MOST_AT_ONCE
    try:
        assert refused(ask(secret, "ledger.csv"), 429)["detail"]
        assert ask(secret, "ledger").status_code == 200
    finally:
        del _running[root.pk]


def test_the_api_is_read_only(root: User) -> None:
    client = Client(enforce_csrf_checks=True)
    header = {"Authorization": f"Bearer {token_of(root, *SCOPES)}"}
    for method in ("post", "put", "patch", "delete", "options"):
        response = getattr(client, method)(V1 + "ledger", headers=header)
        refused(response, 405)
        assert response["Allow"] == "GET, HEAD"


def test_what_is_not_there_is_a_problem_too(root: User) -> None:
    for path in ("/api/", "/api/v2/ledger", V1 + "ledger/", V1 + "nothing", V1 + "ledger.xml"):
        refused(Client().get(path), 404)
    refused(ask(token_of(root, *SCOPES), "budgets", person="nobody"), 404)


@pytest.mark.parametrize(("failure", "status"), [(OperationalError, 503), (ZeroDivisionError, 500)])
def test_a_failure_is_a_problem_too(
    failure: type[Exception], status: int, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise failure("x")

    monkeypatch.setattr(token_check, "count_request", fail)
    client = Client(raise_request_exception=False)
    header = {"Authorization": f"Bearer {token_of(root, 'ledger')}"}
    response = client.get(V1 + "ledger", headers=header)
    refused(response, status)
    assert ("Retry-After" in response) == (status == 503)


# Tokens are made and revoked in the admin.


def test_a_token_is_shown_once_and_its_life_is_on_the_record() -> None:
    officer = people_and_turns.person("officer", is_staff=True)
    officer.groups.add(Group.objects.get(name="Budget officer"))
    client, add = client_of(officer), reverse("admin:conversations_apitoken_add")
    page = client.get(add).content.decode()
    assert 'value="ledger"' in page
    assert 'value="reductions"' not in page
    form = {"name": "Accounts", "chosen": ["ledger"], "days": "30"}
    bad: tuple[dict[str, Any], ...] = ({"days": "0"}, {"days": "367"}, {"chosen": ["reductions"]})
    for wrong in bad:
        assert client.post(add, form | wrong).status_code == 200
    assert not ApiToken.objects.exists()
    shown = client.post(add, form).content.decode()
    secret = re.findall(r"agentweb_[\w-]{43}", shown)[0]
    assert ask(secret, "ledger").status_code == 200
    row = ApiToken.objects.get()
    assert row.scopes == "ledger"
    assert round((row.expires_at - row.created_at) / timedelta(days=1)) == 30
    assert row.last_used_at is not None
    stored = [str(each) for each in people_and_turns.everything().values()]
    assert not any(secret in each or secret.removeprefix("agentweb_") in each for each in stored)
    page = client.get(reverse("admin:conversations_apitoken_change", args=[row.pk]))
    assert secret not in page.content.decode()
    post = {"action": "revoke", "_selected_action": row.pk}
    for said in ("Revoked: 1.", "Revoked: 0."):
        listed = reverse("admin:conversations_apitoken_changelist")
        assert said in client.post(listed, post, follow=True).content.decode()
    refused(ask(secret, "ledger"), 401)
    kinds = AccountEvent.objects.filter(user=officer).order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["token_made", "token_revoked"]
    assert LogEntry.objects.filter(object_id=str(row.pk)).count() == 2


def test_each_sees_their_own_tokens_and_superusers_all(root: User) -> None:
    officer = people_and_turns.person("officer", is_staff=True)
    officer.groups.add(Group.objects.get(name="Budget officer"))
    token_of(root, "ledger", name="of root")
    listed = reverse("admin:conversations_apitoken_changelist")
    assert "of root" in client_of(root).get(listed).content.decode()
    client = client_of(officer)
    assert "of root" not in client.get(listed).content.decode()
    client.post(listed, {"action": "revoke", "_selected_action": ApiToken.objects.get().pk})
    assert ApiToken.objects.get().revoked_at is None
