"""Budgets, context policies, accounts and prices are set in the admin, with their limits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.accounts.reading_log import record_reading
from conversations.budgets.price_book import NewPrice, load_prices
from conversations.models import (
    ApiModel,
    Budget,
    Conversation,
    Crossing,
    ModelPrice,
    SitePrompt,
    User,
)
from conversations.models.periods import compute_bounds
from conversations.rendering.numbers import dollars
from tests.support.stored_turns import played
from tests.web.pages import client_of

pytestmark = pytest.mark.django_db
DOLLAR = 1_000_000


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))


def url(user: User, view: str = "change") -> str:
    return reverse(f"admin:conversations_user_{view}", args=[user.pk])


def form(user: User, budgets: tuple[dict[str, Any], ...] = (), **values: Any) -> dict[str, Any]:
    """Return the form data of a user's page."""
    existing = sum("id" in budget for budget in budgets)
    posted: dict[str, Any] = {
        "username": user.username, "is_active": "on",
        "budgets-TOTAL_FORMS": len(budgets), "budgets-INITIAL_FORMS": existing,
        "turn_cap-TOTAL_FORMS": 0, "turn_cap-INITIAL_FORMS": 0,
    }  # fmt: skip
    for at, budget in enumerate(budgets):
        given = {"unit": "money", "time_zone": "UTC"} | budget
        posted |= {f"budgets-{at}-{name}": value for name, value in given.items()}
        posted[f"budgets-{at}-user"] = user.pk
    return posted | values


def text(response: Any) -> str:
    return str(response.content.decode())


def test_a_budget_is_added_and_shown_in_dollars_with_its_bar(root: Client) -> None:
    user = User.objects.create(username="ada")
    new = {"period": "day", "limit": "2.50", "is_active": "on", "note": "trial"}
    assert root.post(url(user), form(user, (new,))).status_code == 302
    page = text(root.get(url(user)))
    for shown in (
        "$2.50",
        "budget-bar",
        "Money in dollars, such as 2.50",
        'value="2.50"',
        "$0.00 spent of $2.50",
    ):
        assert shown in page
    assert "style=" not in page


def test_the_bar_shows_what_is_spent_of_the_present_window(root: Client) -> None:
    place = played()
    page = text(root.get(url(place.user)))
    window = Budget.objects.get().windows.get()
    assert window.spent > 0
    assert f"{dollars(window.spent)} spent of $50.00" in page
    assert f"?window__id__exact={window.pk}" in page


@pytest.mark.parametrize("periods", [("day", "day"), ("month", "month")])
def test_two_active_budgets_of_one_period_are_refused(
    periods: tuple[str, ...], root: Client
) -> None:
    user = User.objects.create(username="ada")
    new = tuple({"period": p, "limit": 5, "is_active": "on"} for p in periods)
    response = root.post(url(user), form(user, new))
    assert "Only one active budget for each unit, period and model." in text(response)
    Budget.objects.create(user=user, period=periods[0], limit=1)
    response = root.post(url(user), form(user, new[:1]))
    assert response.status_code == 200
    assert Budget.objects.count() == 1


def test_the_active_one_of_two_budgets_is_another(root: Client) -> None:
    user = User.objects.create(username="ada")
    rows = [Budget.objects.create(user=user, limit=at, is_active=at == 2) for at in (1, 2)]
    sent = [{"id": row.pk, "period": "month", "limit": 5} for row in rows]
    for first, second in (("on", ""), ("", "on")):
        both = (sent[0] | {"is_active": first}, sent[1] | {"is_active": second})
        assert root.post(url(user), form(user, both)).status_code == 302
        assert [row.is_active for row in user.budgets.order_by("pk")] == [bool(first), bool(second)]


def test_two_budgets_exchange_their_periods_at_once(root: Client) -> None:
    user = User.objects.create(username="ada")
    rows = [Budget.objects.create(user=user, period=one, limit=1) for one in ("day", "month")]
    both = tuple(
        {"id": row.pk, "period": period, "limit": 5, "is_active": "on"}
        for row, period in zip(rows, ("month", "day"), strict=True)
    )
    assert root.post(url(user), form(user, both)).status_code == 302
    found = user.budgets.order_by("pk").values_list("period", "is_active")
    assert list(found) == [("month", True), ("day", True)]


def in_use(user: User, limit: int, spent: int, **fields: Any) -> Budget:
    """Make an allowance of a person, of which something is spent."""
    budget = Budget.objects.create(user=user, limit=limit, **fields)
    starts, ends = compute_bounds(budget.period, budget.time_zone, timezone.now())
    budget.windows.create(user=user, starts_at=starts, ends_at=ends, spent=spent, limit=limit)
    return budget


@pytest.mark.parametrize("is_there", [True, False])
def test_an_allowance_in_place_of_another_is_told_of_and_none_in_between(
    is_there: bool, root: Client
) -> None:
    user = User.objects.create(username="ada")
    everybody = Budget.objects.create(scope="site", limit=DOLLAR)
    old = in_use(user, 9 * DOLLAR, 2 * DOLLAR)
    new: dict[str, Any] = {"period": "month", "limit": 5, "is_active": "on"}
    if is_there:
        new["id"] = Budget.objects.create(user=user, limit=7, is_active=False).pk
    both = ({"id": old.pk, "period": "month", "limit": 9, "is_active": ""}, new)
    assert root.post(url(user), form(user, both)).status_code == 302
    assert user.budgets.filter(is_active=True).get().limit == 5 * DOLLAR
    assert not Crossing.objects.exists()
    assert not everybody.windows.exists()


def test_who_moves_to_another_group_is_told_of_no_limit_in_between(root: Client) -> None:
    groups = [Group.objects.create(name=name) for name in ("First", "Second")]
    user = User.objects.create(username="ada")
    user.groups.add(groups[0])
    Budget.objects.create(scope="site", limit=DOLLAR)
    for group in groups:
        Budget.objects.create(scope="group", group=group, limit=9 * DOLLAR)
    old = in_use(user, 9 * DOLLAR, 2 * DOLLAR)
    Budget.objects.filter(pk=old.pk).update(is_active=False)
    assert root.post(url(user), form(user, groups=[groups[1].pk])).status_code == 302
    assert list(user.groups.all()) == groups[1:]
    assert not Crossing.objects.exists()


@pytest.mark.parametrize("page", ["person", "budget"])
def test_where_a_budget_was_the_limit_that_applies_from_then_on_is_told_of(
    page: str, root: Client
) -> None:
    user = User.objects.create(username="ada")
    zone = "Pacific/Kiritimati"  # another calendar, so that it has no window before the next call
    old = in_use(user, 9 * DOLLAR, 2 * DOLLAR)
    Budget.objects.filter(pk=old.pk).update(is_active=False)
    moved = Budget.objects.create(user=user, limit=9 * DOLLAR, time_zone=zone)
    everybody = Budget.objects.create(scope="site", limit=DOLLAR)
    assert not Crossing.objects.exists()
    sent: dict[str, Any] = {"unit": "money", "period": "day", "limit": 9, "is_active": "on"}
    sent |= {"time_zone": zone}
    if page == "person":
        response = root.post(url(user), form(user, ({"id": moved.pk} | sent,)))
    else:
        sent |= {"scope": "user", "user": user.pk, "kind": "per_member"}
        response = root.post(reverse("admin:conversations_budget_change", args=[moved.pk]), sent)
    assert response.status_code == 302
    found = Crossing.objects.filter(percent=100).values_list("window__budget", "limit")
    assert list(found) == [(everybody.pk, DOLLAR)]


def test_a_model_of_a_budget_is_the_same_in_other_letters(root: Client) -> None:
    user = User.objects.create(username="ada")
    one = {"period": "month", "limit": 5, "model": "opus", "is_active": "on"}
    assert root.post(url(user), form(user, (one,))).status_code == 302
    one["id"] = user.budgets.get().pk
    for model, status in (("Opus", 200), ("Haiku", 302)):
        other = {"period": "month", "limit": 3, "model": model, "is_active": "on"}
        assert root.post(url(user), form(user, (one, other))).status_code == status
    assert set(user.budgets.values_list("model", flat=True)) == {"opus", "haiku"}


def test_a_budget_in_use_keeps_its_period_and_is_switched_off(root: Client) -> None:
    place = played()
    budget = Budget.objects.get()
    row: dict[str, Any] = {"id": budget.pk, "period": "day", "limit": 9, "is_active": "on"}
    response = root.post(url(place.user), form(place.user, (row,)))
    assert "Already in use" in text(response)
    row |= {"period": "month", "is_active": ""}
    assert root.post(url(place.user), form(place.user, (row,))).status_code == 302
    budget.refresh_from_db()
    assert not budget.is_active
    assert budget.limit == 9_000_000


def test_a_user_who_owns_conversations_is_not_deleted(root: Client) -> None:
    user = played().user
    page = text(root.get(url(user, "delete")))
    assert "ada owns 1 chat: untick “Active”." in page
    root.post(url(user, "delete"), {"post": "yes"})
    chosen = {"action": "delete_selected", "_selected_action": user.pk, "post": "yes"}
    root.post(reverse("admin:conversations_user_changelist"), chosen)
    assert User.objects.filter(pk=user.pk).exists()


def test_a_group_that_alone_has_a_model_or_prompt_is_not_deleted(root: Client) -> None:
    team, other = Group.objects.create(name="Team"), Group.objects.create(name="Other")
    prompt = SitePrompt.objects.create(title="One", command="one", text="a")
    model, listing = ApiModel.objects.latest("pk"), reverse("admin:auth_group_changelist")
    page = reverse("admin:auth_group_delete", args=[team.pk])
    for row in (prompt, model):
        row.groups.set([team])
        for answer in (root.get(page), root.post(page, {"post": "yes"})):
            assert f"{row} is kept for Team alone" in text(answer)
        # Another group has it as well, unless that one goes, too.
        row.groups.add(other)
        both = {"action": "delete_selected", "_selected_action": [team.pk, other.pk], "post": "yes"}
        assert f"{row} is kept for Other, Team alone" in text(root.post(listing, both))
    assert root.post(page, {"post": "yes"}).status_code == 302
    assert [*prompt.groups.all(), *model.groups.all()] == [other, other]


def test_a_user_whose_reading_is_on_record_is_not_deleted(root: Client) -> None:
    conversation = played().conversation
    reader = User.objects.create(username="bob", is_staff=True)
    record_reading(reader=reader, conversation=conversation, what="it")
    root.post(url(reader, "delete"), {"post": "yes"})
    assert User.objects.filter(pk=reader.pk).exists()


def test_a_user_without_a_record_is_deleted(root: Client) -> None:
    user = User.objects.create(username="nobody")
    root.post(url(user, "delete"), {"post": "yes"})
    assert not User.objects.filter(pk=user.pk).exists()


def test_staff_cannot_give_themselves_or_others_more_power() -> None:
    staff = User.objects.create(username="bob", is_staff=True)
    allowed = ("view_user", "change_user", "delete_user", "add_user")
    staff.user_permissions.add(*Permission.objects.filter(codename__in=allowed))
    reader = User.objects.create(username="eve", is_staff=True)
    plain = User.objects.create(username="ada")
    client = client_of(staff)
    password = reverse("admin:auth_user_password_change", args=[reader.pk])
    assert client.get(password).status_code == 403
    assert client.post(url(reader), form(reader, username="x")).status_code == 403
    assert client.post(url(reader, "delete"), {"post": "yes"}).status_code == 403
    for user in (staff, plain):
        powers = {"is_superuser": "on", "is_staff": "on", "user_permissions": "1"}
        assert client.post(url(user), form(user, **powers)).status_code == 302
        user.refresh_from_db()
        assert not user.is_superuser
    assert not plain.is_staff


def test_a_new_user_is_added_with_a_password(root: Client) -> None:
    add = reverse("admin:conversations_user_add")
    word = "a long enough pass phrase"
    posted = {"username": "new", "usable_password": "true", "password1": word, "password2": word}
    assert root.get(add).status_code == 200
    assert root.post(add, posted).status_code == 302
    assert User.objects.get(username="new").check_password(word)


def test_a_model_is_switched_off_and_nothing_else_of_it_changes(root: Client) -> None:
    page = reverse("admin:conversations_apimodel_change", args=["claude-haiku-4-5"])
    assert root.post(page, {"window": 5, "id": "other"}).status_code == 302
    model = ApiModel.objects.get(pk="claude-haiku-4-5")
    assert not model.is_enabled
    assert model.window == 200_000
    assert root.get(reverse("admin:conversations_apimodel_add")).status_code == 403


def price(**values: Any) -> dict[str, Any]:
    start = timezone.now() + timedelta(days=1)
    return {
        "model": "claude-haiku-4-5", "kind": "input", "micros_per_million": "7.25",
        "above_tokens": 0,
        "effective_from_0": f"{start:%Y-%m-%d}", "effective_from_1": "00:00:00",
    } | values  # fmt: skip


def test_a_price_is_closed_and_a_new_one_inserted(root: Client) -> None:
    add = reverse("admin:conversations_modelprice_add")
    assert "Close it first" in text(root.post(add, price()))
    old = ModelPrice.objects.get(model="claude-haiku-4-5", kind="input")
    page = reverse("admin:conversations_modelprice_change", args=[old.pk])
    past = {"effective_to_0": "2026-01-01", "effective_to_1": "00:00:00"}
    assert "A price ends now or later" in text(root.post(page, past))
    assert "A price ends now or later" in text(root.post(page, {}))
    tomorrow = {"effective_to_0": price()["effective_from_0"], "effective_to_1": "00:00:00"}
    assert root.post(page, tomorrow | {"micros_per_million": 1}).status_code == 302
    old.refresh_from_db()
    assert old.effective_to is not None
    assert old.micros_per_million != 1
    assert root.post(add, price()).status_code == 302
    assert ModelPrice.objects.get(micros_per_million=7_250_000).effective_to is None
    assert (
        root.post(reverse("admin:conversations_modelprice_delete", args=[old.pk])).status_code
        == 403
    )


def ends(moment: datetime) -> dict[str, str]:
    return {"effective_to_0": f"{moment:%Y-%m-%d}", "effective_to_1": f"{moment:%H:%M:%S}"}


def test_a_price_ends_in_the_second_of_the_page(root: Client) -> None:
    old = ModelPrice.objects.get(model="claude-haiku-4-5", kind="input")
    page, before = reverse("admin:conversations_modelprice_change", args=[old.pk]), timezone.now()
    long_ago = ends(before - timedelta(minutes=6))
    assert "A price ends now or later" in text(root.post(page, long_ago))
    assert root.post(page, ends(before - timedelta(seconds=1))).status_code == 302
    old.refresh_from_db()
    assert old.effective_to is not None
    assert before <= old.effective_to <= timezone.now()


def test_a_scheduled_price_does_not_end_before_it_begins(root: Client) -> None:
    start = (timezone.now() + timedelta(days=10)).replace(microsecond=0)
    load_prices(rows=[NewPrice("claude-haiku-4-5", "input", 9_000_000, starts=start)])
    new = ModelPrice.objects.latest("pk")
    page = reverse("admin:conversations_modelprice_change", args=[new.pk])
    for end in (start - timedelta(days=9), start):
        assert "A price ends after it begins." in text(root.post(page, ends(end)))
    assert root.post(page, ends(start + timedelta(days=1))).status_code == 302


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_day_that_not_every_zone_can_write_is_no_day_of_a_price(day: str, root: Client) -> None:
    add, free = reverse("admin:conversations_modelprice_add"), {"above_tokens": 7}
    told, count = "is no date such as 2027-01-31", ModelPrice.objects.count()
    assert told in text(root.post(add, price(effective_from_0=day, **free)))
    end = {"effective_to_0": day, "effective_to_1": "23:59:59"}
    assert told in text(root.post(add, price(**free, **end)))
    assert ModelPrice.objects.count() == count
    old = ModelPrice.objects.get(model="claude-haiku-4-5", kind="input")
    page = reverse("admin:conversations_modelprice_change", args=[old.pk])
    assert told in text(root.post(page, end))


def test_a_price_that_is_over_never_changes(root: Client) -> None:
    old = ModelPrice.objects.get(model="claude-haiku-4-5", kind="input")
    ModelPrice.objects.filter(pk=old.pk).update(effective_to=timezone.now() - timedelta(days=1))
    page = reverse("admin:conversations_modelprice_change", args=[old.pk])
    later = {"effective_to_0": "2027-01-01", "effective_to_1": "00:00:00"}
    assert root.post(page, later).status_code == 403
    backwards = price(effective_to_0="2026-01-01", effective_to_1="00:00:00")
    assert "ends after it begins" in text(
        root.post(reverse("admin:conversations_modelprice_add"), backwards)
    )


def test_the_lists_of_people_and_prices_open(root: Client) -> None:
    for kind in (User, ApiModel, ModelPrice):
        name = f"admin:conversations_{kind._meta.model_name}_changelist"
        assert root.get(reverse(name) + "?q=a").status_code == 200
    assert root.get(reverse("admin:index")).status_code == 200
    assert Conversation.objects.count() == 0
