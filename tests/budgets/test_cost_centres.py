"""Cost centres: fixed with each call, chosen by staff for a person and by people for a chat."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.cost_centres import find_cost_centre
from conversations.budgets.usage.centres import sum_centres
from conversations.budgets.usage.closed_days import close_days
from conversations.budgets.usage.csv_rows import SHEETS
from conversations.budgets.usage.days import Span
from conversations.budgets.usage.dimensions import sum_by
from conversations.budgets.usage.shares import split_money
from conversations.budgets.usage.site import sum_site
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.models import ApiCall, ClosedDay, Conversation, CostCentre, User
from conversations.turns.forks import fork_conversation
from tests.support import people_and_turns

pytestmark = pytest.mark.django_db


@pytest.fixture
def sales() -> CostCentre:
    return CostCentre.objects.create(code="4711", name="Sales")


@pytest.fixture
def research() -> CostCentre:
    return CostCentre.objects.create(code="4712", name="Research")


def call_of(user: User) -> ApiCall:
    """Open a call of a new chat of a person."""
    lease = people_and_turns.started_turn(User.objects.get(pk=user.pk))
    return ApiCall.objects.get(pk=people_and_turns.opened(lease).call)


def test_a_call_counts_for_the_chats_own_centre_else_the_persons(
    sales: CostCentre, research: CostCentre
) -> None:
    user = people_and_turns.person(cost_centre=sales)
    chat = Conversation(owner=user)
    assert find_cost_centre(chat) == sales.pk
    chat.cost_centre = research
    assert find_cost_centre(chat) == research.pk
    CostCentre.objects.filter(pk=research.pk).update(is_active=False)
    assert find_cost_centre(chat) == sales.pk
    CostCentre.objects.update(is_active=False)
    assert find_cost_centre(chat) is None


def test_a_later_change_moves_nothing_that_was_spent(
    sales: CostCentre, research: CostCentre
) -> None:
    user = people_and_turns.person(cost_centre=sales)
    first = call_of(user)
    User.objects.update(cost_centre=research)
    assert [call_of(user).cost_centre, ApiCall.objects.get(pk=first.pk).cost_centre] == [
        research,
        sales,
    ]
    assert list(verify_everything(Tally())) == []


def test_without_centres_a_call_reads_no_owner_for_it() -> None:
    chat = Conversation(owner_id=people_and_turns.person().pk)
    with CaptureQueriesContext(connection) as queries:
        assert find_cost_centre(chat) is None
    assert len(queries) == 1


def test_a_fork_counts_for_the_same_centre(sales: CostCentre) -> None:
    lease = people_and_turns.started_turn()
    people_and_turns.answered(lease)
    Conversation.objects.update(cost_centre=sales)
    assert fork_conversation(turn=people_and_turns.turn_of(lease)).cost_centre == sales


def spent(user: User) -> None:
    """Play a chat of a person with one answered call."""
    people_and_turns.answered(people_and_turns.started_turn(User.objects.get(pk=user.pk)))


def reports() -> tuple[object, ...]:
    """Return every report by cost centre, of this week, and check that each has all the money."""
    today = datetime.now(UTC).date()
    span = Span(today - timedelta(6), today)
    found = sum_site(span)
    lines = [(one.name, one.figures) for one in sum_centres(found.centres, found.groups)]
    shares = split_money(found, "centre")
    sheet = [(str(row[0]), str(row[6])) for row in list(SHEETS["cost-centres"](span))[1:]]
    by = {values["cost_centre"]: one for values, one in sum_by(span, ["cost_centre"])}
    whole = found.total.micros
    assert sum(figures.micros for _, figures in lines) == whole
    assert sum(micros for _, _, micros in shares) == whole
    assert sum(figures.micros for figures in by.values()) == whole
    return lines, sorted(shares), sheet, by


def test_every_report_by_cost_centre_says_the_same_and_none_loses_what_counts_for_none(
    sales: CostCentre, research: CostCentre
) -> None:
    ada = people_and_turns.person(cost_centre=sales)
    spent(people_and_turns.person("bea"))
    assert [(name, figures.calls) for name, figures in reports()[0]] == [("No cost centre", 1)]
    spent(ada)
    spent(ada)
    User.objects.filter(pk=ada.pk).update(cost_centre=research)
    spent(ada)
    lines, shares, sheet, by = reports()
    assert [name for name, _ in lines] == ["4711 Sales", "4712 Research", "No cost centre"]
    assert [figures.calls for _, figures in lines] == [2, 1, 1]
    assert [name for name, _ in sheet] == ["4711 Sales", "4712 Research", "No cost centre"]
    assert {code: figures.calls for code, figures in by.items()} == {"": 1, "4711": 2, "4712": 1}
    assert len(shares) == 3


def test_closed_days_and_erasures_keep_what_each_centre_spent(sales: CostCentre) -> None:
    ada = people_and_turns.person(cost_centre=sales)
    spent(ada)
    spent(people_and_turns.person("bea"))
    before = reports()
    assert close_days(timezone.now() + timedelta(3)) == 1
    assert reports() == before
    assert list(verify_everything(Tally())) == []
    delete_everything(owner_id=ada.pk)
    assert erase_due_conversations(owner_id=ada.pk) == 1
    assert reports() == before
    assert close_days(timezone.now() + timedelta(3)) == 1
    assert reports() == before
    CostCentre.objects.update(name="Selling")
    assert reports()[0][0][0] == "4711 Selling"


def test_a_day_without_centres_is_closed_as_before_there_were_any() -> None:
    spent(people_and_turns.person())
    close_days(timezone.now() + timedelta(3))
    assert "centres" not in ClosedDay.objects.get().sums
