"""Budgets of one model or family: what counts in them, what they refuse, and what is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from conversations.agent.ports import Refused, ReplyAhead
from conversations.agent.prices import LEAST_OUTPUT
from conversations.budgets.effective import Rule, choose_effective
from conversations.budgets.grants import BudgetError, set_limit
from conversations.budgets.notices import find_limits
from conversations.budgets.reconciliation import check_windows
from conversations.budgets.status import list_statuses
from conversations.context.view.envelope import build_envelope
from conversations.models import ApiCall, Budget, BudgetWindow, MoneyRecord, Reservation, User
from conversations.models.catalogue import is_model_in
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import PLENTY, clean, member, padded, play, refusal, site, worst

HAIKU = "claude-haiku-5-5"
SMALL = build_envelope(model=HAIKU, max_tokens=2_000, system="Be brief.")


@pytest.mark.parametrize(
    ("scope", "model", "is_in"),
    [
        ("", "claude-opus-5", True),
        ("opus", "claude-opus-5", True),
        ("opus", "claude-opus-4-5-20251101", True),
        ("Opus", "claude-opus-5", True),
        ("opus", "claude-sonnet-5", False),
        ("op", "claude-opus-5", False),
        ("claude-opus-5", "claude-opus-5", True),
        # A later model whose id goes on where the scope's ends is another one.
        ("claude-opus-5", "claude-opus-5-5", False),
        ("claude-opus-4-5", "claude-opus-4-5-20251101", True),
        ("claude-opus-4-5", "claude-opus-4-5-20251101-x", False),
        ("claude-opus-4-5-20251101", "claude-opus-4-5", False),
        ("5", "claude-opus-5", False),
        ("local", "local", True),
    ],
)
def test_a_scope_names_a_model_or_a_family(scope: str, model: str, is_in: bool) -> None:
    assert is_model_in(scope, model) == is_in


_MODELS = ("claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", HAIKU)
_RULES = st.lists(
    st.tuples(
        st.sampled_from(["site", "group", "user"]),
        st.sampled_from(["pool", "per_member"]),
        st.sampled_from(["money", "turns"]),
        st.sampled_from(["", "opus", "claude-opus-5", "haiku"]),
        st.integers(0, 5),
    ),
    max_size=12,
)


@given(_RULES, st.sampled_from(_MODELS))
def test_what_applies_to_a_model_is_what_would_apply_without_the_others(
    rows: list[tuple[str, str, str, str, int]], model: str
) -> None:
    number = count(1)
    rules = [
        Rule(next(number), scope, kind, unit, "month", "UTC", limit, model=of)
        for scope, kind, unit, of, limit in rows
    ]
    applying = [rule for rule in choose_effective(rules) if is_model_in(rule.model, model)]
    alone = choose_effective([rule for rule in rules if is_model_in(rule.model, model)])
    assert applying == list(alone)
    # Those of all models are the same whatever is set for some.
    plain = choose_effective([rule for rule in rules if not rule.model])
    assert [rule for rule in applying if not rule.model] == list(plain)


@pytest.mark.django_db
def test_only_calls_of_its_model_count_in_it_and_are_refused_by_it() -> None:
    user = member()
    overall = site(PLENTY)
    sonnet = site(PLENTY, model="sonnet")
    exact = people_and_turns.limited(user, PLENTY, model=stored_turns.MODEL)
    haiku = site(1, kind="pool", model="haiku")
    lease = people_and_turns.started_turn(user)
    sent = people_and_turns.opened(lease)
    held = {row.window.budget: row.amount for row in Reservation.objects.all()}
    assert held == dict.fromkeys((overall, sonnet, exact), worst(lease))
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    with pytest.raises(Refused) as refused:
        people_and_turns.opened(lease, SMALL)
    assert refused.value.code == "budget"
    text = refused.value.text
    assert text.startswith("The monthly budget of <$0.0001 (Haiku, shared by everybody) does not")
    assert text.endswith("It counts Haiku alone: choose another model to go on at once.")
    Budget.objects.filter(pk=haiku.pk).update(limit=PLENTY)
    people_and_turns.opened(lease, SMALL)
    assert Reservation.objects.filter(is_open=True).count() == 2
    spent = {one.rule.id: (one.spent > 0, one.held > 0) for one in list_statuses(user.pk)}
    assert spent[haiku.pk] == (False, True)
    assert spent[overall.pk] == (True, True)
    assert spent[sonnet.pk] == spent[exact.pk] == (True, False)
    assert clean()


@pytest.mark.django_db
def test_an_allowance_of_a_model_changed_in_mid_month_gives_nothing_away() -> None:
    user = member()
    site(PLENTY, model="sonnet")
    cost = play(people_and_turns.started_turn(user))
    own = people_and_turns.limited(user, cost + 10, model="sonnet")
    other = people_and_turns.limited(user, cost + 10, model="opus")
    assert {one.rule.id: one.spent for one in list_statuses(user.pk)} == {own.pk: cost, other.pk: 0}
    assert "(Sonnet, set for this person)" in refusal(people_and_turns.started_turn(user, "More"))


@pytest.mark.django_db
def test_a_turn_counts_once_for_each_model() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 1, unit="turns", model="sonnet")
    people_and_turns.limited(user, 1, unit="turns", model="haiku")
    lease = people_and_turns.started_turn(user)
    for envelope in (stored_turns.ENVELOPE, SMALL, SMALL, stored_turns.ENVELOPE):
        sent = people_and_turns.opened(lease, envelope)
        stored_turns.close(lease, sent.call, people_and_turns.complete())
    assert [one.spent for one in list_statuses(user.pk)] == [1, 1]
    assert clean()


@pytest.mark.django_db
@pytest.mark.parametrize(("more", "is_admitted"), [(0, True), (-1, False)])
def test_a_summary_by_another_model_leaves_what_the_replys_model_needs(
    more: int, is_admitted: bool
) -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    sonnet = people_and_turns.limited(user, worst(lease, LEAST_OUTPUT) + more, model="sonnet")
    tokens = people_and_turns.sending(lease).estimated_tokens
    small = people_and_turns.limited(user, padded(lease) + 1_500, unit="tokens", model="haiku")
    reply = people_and_turns.sending(lease)
    summary = replace(
        reply, purpose="summary", envelope=SMALL, ahead=ReplyAhead(stored_turns.MODEL, tokens)
    )
    if not is_admitted:
        with pytest.raises(Refused, match="Sonnet, set for"):
            calls.open_call(lease=lease, sending=summary)
        return
    calls.open_call(lease=lease, sending=summary)
    # It is cut to the room of its own model alone, and holds there alone.
    held = {row.window.budget: row.amount for row in Reservation.objects.all()}
    assert held == {small: padded(lease) + 1_500}
    assert not BudgetWindow.objects.filter(budget=sonnet, held__gt=0).exists()


@pytest.mark.django_db
def test_budgets_of_models_take_no_further_statement() -> None:
    user = member()
    counts = []
    for model in ("", "sonnet", "haiku"):
        site(PLENTY, model=model)
        # Settings are read anew after a change.
        people_and_turns.answered(people_and_turns.started_turn(user))
        lease = people_and_turns.started_turn(user, f"More {model}")
        with CaptureQueriesContext(connection) as found:
            people_and_turns.answered(lease)
        counts.append(len(found))
    assert len(set(counts)) == 1, counts


@pytest.mark.django_db
def test_a_page_says_of_which_model_the_limit_is_used_up() -> None:
    user = people_and_turns.person()
    people_and_turns.limited(user, 0, model="sonnet")
    said = find_limits(user.pk, stored_turns.MODEL)
    assert said.stop is not None
    assert (said.stop.rule.model, said.closed) == ("sonnet", ("sonnet",))
    assert said.pill.label == "this month, Sonnet"
    other = find_limits(user.pk, HAIKU)
    assert (other.stop, other.pill.is_limited, other.closed) == (None, False, ("sonnet",))
    # Where nothing is left for any model, that is what is said: another model would not help.
    overall = people_and_turns.limited(user, 0, "hour")
    stop = find_limits(user.pk, stored_turns.MODEL).stop
    assert stop is not None
    assert stop.rule.id == overall.pk


@pytest.mark.django_db
def test_a_call_of_another_model_in_its_window_is_found() -> None:
    user = people_and_turns.person()
    budget = people_and_turns.limited(user, PLENTY)
    play(people_and_turns.started_turn(user))
    assert clean()
    Budget.objects.filter(pk=budget.pk).update(model="opus")
    assert [one.what for one in check_windows()] == ["calls of another model are booked to it"]
    assert ApiCall.objects.get().model == stored_turns.MODEL


@pytest.mark.django_db
def test_a_name_that_no_model_has_is_refused_and_records_of_before_stay() -> None:
    user = User.objects.create_user("ada")
    more = {"user": user, "kind": "per_member", "unit": "money", "period": "month", "limit": 5}
    plain = set_limit(**more)
    family = set_limit(**more, model="Sonnet ")
    assert (family.pk != plain.pk, family.model, str(family)) == (
        True, "sonnet", "$0.000005 a month for Sonnet"
    )  # fmt: skip
    assert set_limit(**more | {"limit": 6}, model="sonnet").pk == family.pk
    with pytest.raises(BudgetError, match="No model of the catalogue"):
        set_limit(**more, model="sonett")
    with pytest.raises(ValidationError):
        Budget(user=user, limit=1, model="5").clean()
    said = dict(MoneyRecord.objects.filter(table="budget").values_list("key", "content"))
    assert "model" not in said[plain.pk]
    assert '"model":"sonnet"' in said[family.pk]


@pytest.mark.django_db
def test_of_two_budgets_that_are_set_at_once_the_later_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check, same = Budget.full_clean, {"kind": "pool", "unit": "money", "period": "week"}

    def check_before_the_other(budget: Budget) -> None:
        check(budget)
        Budget.objects.create(scope="site", limit=7, **same)

    monkeypatch.setattr(Budget, "full_clean", check_before_the_other)
    with pytest.raises(BudgetError, match="active budget of this kind"):
        set_limit(**same, limit=5)
