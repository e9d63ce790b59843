"""Cost centres: fixed with each call, chosen by staff for a person and by people for a chat."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.audit.verify import Tally, verify_everything
from conversations.budgets.cost_centres import find_cost_centre
from conversations.models import ApiCall, Conversation, CostCentre, User
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
