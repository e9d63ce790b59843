"""A page that is older than its row changes only what its person changed on it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction
from django.db.models import Model
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone

from conversations.admin import concurrent_edits
from conversations.models import (
    ApiModel,
    ApprovalRule,
    Budget,
    BudgetAlert,
    CostCentre,
    McpServer,
    ModelPrice,
    SitePrompt,
    ToolRule,
    TurnCap,
    User,
)
from tests.support import people_and_turns
from tests.web.pages import client_of
from tests.web.sent_forms import open_form, read_form, without
from tests.web.test_admin_budgets import change, words
from tests.web.test_admin_people import url

pytestmark = pytest.mark.django_db
MILLION, TAIL = 1_000_000, "protected_tail_messages"
REFUSED = "Somebody has changed this since the page was opened. Open it again."


def root_of(name: str) -> Client:
    return client_of(User.objects.create(username=name, is_staff=True, is_superuser=True))


@pytest.fixture
def root() -> Client:
    return root_of("root")


@pytest.mark.parametrize("is_superuser", [True, False])
def test_an_older_page_does_not_open_a_closed_account(is_superuser: bool, root: Client) -> None:
    team, other = Group.objects.create(name="Team"), Group.objects.create(name="Other")
    ada = User.objects.create(username="ada", is_staff=is_superuser, is_superuser=is_superuser)
    boss = User.objects.create(username="boss", is_staff=True, is_superuser=is_superuser)
    ada.groups.add(team)
    boss.user_permissions.add(*Permission.objects.filter(codename__in=("view_user", "change_user")))
    older = open_form(client_of(boss), url(ada))
    closed = without(open_form(root, url(ada)), "is_active", "is_staff", "is_superuser", "groups")
    assert root.post(url(ada), closed | {"groups": [str(other.pk)]}).status_code == 302
    sent = older | {"first_name": "Ada"}
    assert client_of(boss).post(url(ada), sent).status_code == 302
    ada.refresh_from_db()
    assert (ada.is_active, ada.is_staff, ada.is_superuser) == (False, False, False)
    assert (ada.first_name, [*ada.groups.all()]) == ("Ada", [other])


@pytest.mark.django_db(transaction=True)
def test_of_two_changes_at_once_the_later_one_is_refused(root: Client) -> None:
    budget = people_and_turns.limited(people_and_turns.person(), 100 * MILLION)
    path = change(budget)
    older = open_form(root, path)

    def post(**fields: str) -> tuple[int, str]:
        try:
            answer = root.post(path, older | fields)
            return answer.status_code, words(answer)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            Budget.objects.filter(pk=budget.pk).update(limit=5 * MILLION)
            later, other = threads.submit(post, limit="80"), threads.submit(post, note="3")
            wait([later, other], timeout=0.5)
            assert not later.done()
            assert not other.done()
        assert REFUSED in later.result()[1]
        assert other.result()[0] == 302
    budget.refresh_from_db()
    assert (budget.limit, budget.note) == (5 * MILLION, "3")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["budgets-0-limit", "turn_cap-0-micros"])
def test_of_two_changes_at_once_the_page_of_the_person_waits_for_the_other(
    name: str, root: Client
) -> None:
    ada = people_and_turns.person()
    people_and_turns.limited(ada, 100 * MILLION)
    TurnCap.objects.create(user=ada, micros=100 * MILLION)
    older = open_form(root, url(ada))

    def post() -> str:
        try:
            return words(root.post(url(ada), older | {name: "80"}))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        # As the budget's or the cap's own page does.
        with transaction.atomic():
            Budget.objects.update(limit=5 * MILLION)
            TurnCap.objects.update(micros=5 * MILLION)
            later = threads.submit(post)
            wait([later], timeout=0.5)
            assert not later.done()
        assert REFUSED in later.result()
    assert (Budget.objects.get().limit, TurnCap.objects.get().micros) == (5 * MILLION,) * 2


def test_groups_that_the_page_did_not_show_stay(root: Client) -> None:
    team, ada = Group.objects.create(name="Team"), User.objects.create(username="ada")
    older = open_form(root, url(ada))
    ada.groups.add(team)
    assert root.post(url(ada), older).status_code == 302
    assert [*ada.groups.all()] == [team]
    assert REFUSED in words(root.post(url(ada), older | {"groups": [str(team.pk) + "0"]}))
    newer = without(open_form(root, url(ada)), "groups")
    assert root.post(url(ada), newer).status_code == 302
    assert not ada.groups.exists()


def test_the_numbers_of_a_policy_stay(root: Client) -> None:
    ada = User.objects.create(username="ada", policy={TAIL: 9})
    older, name = open_form(root, url(ada)), "policy_compaction_threshold_tokens"
    assert root.post(url(ada), older | {name: "90000"}).status_code == 302
    assert root.post(url(ada), older | {"first_name": "Ada"}).status_code == 302
    ada.refresh_from_db()
    assert ada.policy == {TAIL: 9, "compaction_threshold_tokens": 90_000}
    assert REFUSED in words(root.post(url(ada), older | {name: "80000"}))
    # Both wrote the same.
    assert root.post(url(ada), older | {name: "90000"}).status_code == 302


def test_an_older_page_does_not_raise_a_lowered_limit(root: Client) -> None:
    ada = people_and_turns.person()
    budget = people_and_turns.limited(ada, 100 * MILLION)
    cap = TurnCap.objects.create(user=ada, micros=100 * MILLION, rounds=5)
    pages = {path: open_form(root, path) for path in (change(budget), change(cap), url(ada))}
    Budget.objects.update(limit=5 * MILLION)
    TurnCap.objects.update(micros=7 * MILLION)
    for path, name in zip(pages, ("note", "rounds", "turn_cap-0-rounds"), strict=True):
        answer = root.post(path, pages[path] | {name: "3"})
        assert answer.status_code == 302
    assert (Budget.objects.get().limit, Budget.objects.get().note) == (5 * MILLION, "3")
    assert (TurnCap.objects.get().micros, TurnCap.objects.get().rounds) == (7 * MILLION, 3)
    for path, name in zip(pages, ("limit", "micros", "budgets-0-limit"), strict=True):
        assert REFUSED in words(root.post(path, pages[path] | {name: "80"}))
    assert Budget.objects.get().limit == 5 * MILLION


def notes() -> McpServer:
    place = {"transport": "http", "url": "https://example.org/mcp"}
    return McpServer.objects.create(name="notes", is_enabled=True, **place)


def switched() -> list[tuple[Model, str]]:
    """Return a row of each table with switches, and the switch."""
    alert = BudgetAlert.objects.create(name="Money", from_percent=80)
    alert.people.add(people_and_turns.person(email="ada@example.org"))
    server = notes()
    return [
        (ApiModel.objects.filter(is_enabled=True).latest("pk"), "is_enabled"),
        (server, "is_enabled"),
        (alert, "is_active"),
        (CostCentre.objects.create(code="1", name="One"), "is_active"),
        (ToolRule.objects.create(tool="recall", is_allowed=True), "is_allowed"),
        (people_and_turns.limited(alert.people.get(), 5), "is_active"),
    ]


def test_an_older_page_switches_nothing_on_again(root: Client) -> None:
    for row, name in switched():
        older = open_form(root, change(row))
        for sent in (without(older, name), older):
            assert root.post(change(row), sent).status_code == 302, row
            row.refresh_from_db()
            assert not getattr(row, name), row


def test_what_two_changed_differently_is_refused(root: Client) -> None:
    rule = ApprovalRule.objects.create(tool="recall", rule="ask")
    prompt = SitePrompt.objects.create(title="One", command="one", text="a\nb")
    model = ApiModel.objects.filter(is_enabled=True).latest("pk")
    server = notes()
    price = ModelPrice.objects.filter(effective_to=None).latest("pk")
    day = timezone.now() + timedelta(days=9)
    values: list[tuple[Model, str, Any, str, str]] = [
        (rule, "rule", "block", "rule", "never"),
        (prompt, "text", "c\nd", "text", "e\r\nf"),
        (model, "thresholds", {TAIL: 5}, "thresholds", f'{{"{TAIL}": 6}}'),
        (server, "deadline", 7, "deadline", "8"),
        (server, "allowed_tools", ["a"], "allowed_lines", "b"),
        (price, "effective_to", day, "effective_to_0", f"{day + timedelta(days=1):%Y-%m-%d}"),
    ]
    for row, column, value, field, sent in values:
        older = open_form(root, change(row))
        if column == "effective_to":
            older |= {"effective_to_1": "00:00:00"}
        type(row)._default_manager.filter(pk=row.pk).update(**{column: value})
        assert REFUSED in words(root.post(change(row), older | {field: sent})), field
        row.refresh_from_db()
        assert getattr(row, column) == value


def test_lines_that_nobody_else_changed_are_saved(root: Client) -> None:
    prompt = SitePrompt.objects.create(title="One", command="one", text="a\nb")
    older = open_form(root, change(prompt))
    assert root.post(change(prompt), older | {"text": "c\r\nd"}).status_code == 302
    prompt.refresh_from_db()
    assert prompt.text == "c\nd"


def test_a_page_that_is_shown_again_remembers_what_it_showed(root: Client) -> None:
    ada = User.objects.create(username="ada")
    older = open_form(root, url(ada))
    User.objects.filter(pk=ada.pk).update(is_active=False)
    again = root.post(url(ada), older | {"email": "no address"})
    assert 'name="initial-is_active" value="True"' in again.content.decode()
    assert "disabled" not in again.content.decode().partition('name="is_active"')[2][:80]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_moment_is_read_from_a_page_that_is_shown_again(language: str, root: Client) -> None:
    User.objects.update(preferences={"language": language})
    price = ModelPrice.objects.filter(effective_to=None).latest("pk")
    past = {"effective_to_0": "2026-01-01", "effective_to_1": "00:00:00"}
    again = read_form(root.post(change(price), open_form(root, change(price)) | past))
    day = f"{timezone.now() + timedelta(days=9):%Y-%m-%d}"
    assert root.post(change(price), again | {"effective_to_0": day}).status_code == 302
    price.refresh_from_db()
    assert f"{price.effective_to:%Y-%m-%d}" == day
    # Nobody has changed it since.
    later = {"effective_to_0": f"{timezone.now() + timedelta(days=19):%Y-%m-%d}"}
    assert root.post(change(price), open_form(root, change(price)) | later).status_code == 302


@pytest.mark.parametrize("text", ["", "\0", "x", "-1", "9" * 30, "[" * 3_000, "1,x", "2,"])
def test_what_no_page_showed_is_no_fault(text: str, root: Client) -> None:
    rows = [row for row, _ in switched()]
    ada = User.objects.exclude(budgets=None).get()
    TurnCap.objects.create(user=ada, micros=5)
    price = ModelPrice.objects.filter(effective_to=None).latest("pk")
    for path in (url(ada), change(price), *map(change, rows)):
        sent = open_form(root, path)
        shown = dict.fromkeys((name for name in sent if name.startswith("initial-")), text)
        assert root.post(path, sent | shown).status_code in (200, 302, 400)


def test_every_form_that_changes_a_row_is_such_a_form(root: Client, rf: RequestFactory) -> None:
    request: HttpRequest = rf.get("/")
    request.user = User.objects.get(username="root")
    kind = concurrent_edits._ConcurrentForm
    for model, table in admin.site._registry.items():
        if table.has_change_permission(request):
            assert issubclass(table.get_form(request, model(), change=True), kind), model
        for inline in table.get_inline_instances(request, model()):
            assert issubclass(inline.get_formset(request, model()).form, kind), inline
