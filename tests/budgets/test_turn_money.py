"""A turn's money is planned as one: pages and admission agree, and the reply comes first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random

import pytest
from django.utils import timezone

from conversations.agent.ports import Refused, ReplyAhead, SearchesLimited, Sending
from conversations.agent.prices import LEAST_OUTPUT, PriceList
from conversations.budgets.admission import choose_searches, fit_call
from conversations.budgets.affordability import TurnRoom, check_call, size_call
from conversations.budgets.effective import BudgetStatus, Rule
from conversations.budgets.prices import load_price_list
from conversations.budgets.status import EffectiveBudget, list_statuses
from conversations.budgets.units import MONEY, TOKENS, UNITS, CallSize
from conversations.budgets.windows import Slot
from conversations.context.view import wire
from conversations.context.view.envelope import Envelope, build_envelope
from conversations.models import Budget, BudgetWindow, ModelPrice
from conversations.turns import calls
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import padded, worst

TURNS = 1_000
NOW = datetime(2026, 11, 25, tzinfo=UTC)
RATES = {"input": 2_000_000, "output": 10_000_000, "cache_write_5m": 2_500_000,
         "cache_write_1h": 4_000_000, "cache_read": 200_000}  # fmt: skip
PRICES = PriceList("m", ((0, RATES), (20_000, {kind: 2 * rate for kind, rate in RATES.items()})))


@dataclass
class GeneratedTurn:
    """A turn whose budgets and cap leave about as much as it needs."""

    dice: Random

    def __post_init__(self) -> None:
        dice = self.dice
        self.tokens = dice.randrange(500, 40_000)
        self.reply = size_call(PRICES, self.tokens)
        self.summary = size_call(PRICES, dice.randrange(500, 40_000), output=4_000)
        needed = self.reply.cost + dice.choice((0, self.summary.cost))
        self.turn = TurnRoom(self._near(needed) if dice.random() < 0.5 else 0)
        self.left = {MONEY.name: self._near(needed)}
        if dice.random() < 0.5:
            both = dice.choice((0, self.summary.input_tokens + self.summary.output_tokens))
            self.left[TOKENS.name] = self._near(self.reply.input_tokens + LEAST_OUTPUT + both)

    def _near(self, amount: int) -> int:
        return amount * self.dice.randrange(70, 140) // 100

    @property
    def slots(self) -> tuple[Slot, ...]:
        found = []
        for key, (unit, left) in enumerate(self.left.items()):
            rule = Rule(key, "user", "per_member", unit, "month", "UTC", left)
            status = BudgetStatus(rule, NOW, None, max(left, 0), max(-left, 0), 0)
            budget = EffectiveBudget(rule, 1, NOW, None, left)
            found.append(Slot(budget, BudgetWindow(), status))
        return tuple(found)

    def is_shown(self) -> bool:
        """Check as a page does before a message is written."""
        statuses = [slot.status for slot in self.slots]
        return check_call(self.reply, statuses, self.turn).is_allowed

    def admit(self, size: CallSize, ahead: CallSize | None = None) -> CallSize | None:
        """Admit a call as admission does; None if it is refused."""
        fitted = fit_call(size, self.slots, self.turn, ahead)
        statuses = [slot.status for slot in self.slots]
        return fitted if check_call(fitted, statuses, self.turn, ahead=ahead).is_allowed else None

    def spend(self, size: CallSize) -> None:
        """Settle a call with a part of what was held, or all of it."""
        share = self.dice.choice((40, 100))
        for unit in self.left:
            self.left[unit] -= UNITS[unit].worst(size) * share // 100
        self.turn = replace(self.turn, spent=self.turn.spent + size.cost * share // 100)


def test_no_turn_pays_for_a_summary_and_then_cannot_afford_its_reply() -> None:
    dice = Random(20_261_125)
    seen: Counter[tuple[bool, bool]] = Counter()
    for number in range(TURNS):
        one = GeneratedTurn(dice)
        shown = one.is_shown()
        full = replace(one.reply, output_tokens=32_000, lifetime=dice.choice(("5m", "1h")))
        # What a page takes is admitted, what it does not take is not.
        assert (one.admit(full) is not None) == shown, number
        summary = one.admit(one.summary, one.reply)
        seen[shown, summary is not None] += 1
        if summary is not None:
            one.spend(summary)
            assert one.admit(full) is not None, number
    assert seen[False, True] == 0
    assert min(seen[True, True], seen[True, False], seen[False, False]) > TURNS // 20


@pytest.mark.django_db
@pytest.mark.parametrize(("more", "is_admitted"), [(0, True), (-1, False)])
@pytest.mark.parametrize("unit", ["money", "tokens"])
def test_a_summary_is_admitted_only_if_its_reply_is_affordable_after_it(
    unit: str, more: int, is_admitted: bool
) -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    messages = wire.encode([{"role": "user", "content": [{"type": "text", "text": "x"}]}])
    ahead = ReplyAhead(stored_turns.MODEL, people_and_turns.sending(lease).estimated_tokens)
    summary = Sending(
        "summary", stored_turns.ENVELOPE, messages, ahead.tokens, None, 1, ahead=ahead
    )
    needed = {
        "money": 2 * worst(lease, LEAST_OUTPUT), "tokens": 2 * (padded(lease) + LEAST_OUTPUT)
    }  # fmt: skip
    people_and_turns.limited(user, needed[unit] + more, unit=unit)
    # A turn that counts already, in a budget that is used up by it, counts no more.
    people_and_turns.limited(user, 1, unit="turns")
    if not is_admitted:
        with pytest.raises(Refused):
            calls.open_call(lease=lease, sending=summary)
        return
    sent = calls.open_call(lease=lease, sending=summary)
    assert sent.is_limited
    stored_turns.close(lease, sent.call, people_and_turns.complete())
    people_and_turns.opened(lease)


@pytest.mark.django_db
def test_a_summary_is_refused_where_the_models_reply_has_no_price() -> None:
    lease = people_and_turns.started_turn()
    ahead = ReplyAhead("claude-unknown", 100)
    sending = replace(people_and_turns.sending(lease), ahead=ahead)
    with pytest.raises(Refused, match="no price"):
        calls.open_call(lease=lease, sending=sending)


@pytest.mark.parametrize("output", [600, LEAST_OUTPUT])
def test_a_short_answer_keeps_its_searches_and_its_cache_unless_they_do_not_fit(
    output: int,
) -> None:
    rates = {**RATES, "web_search": 10_000_000_000}
    full = size_call(PriceList("m", ((0, rates),)), 5_000, 5, output, "1h")
    assert fit_call(full, (), TurnRoom()) == fit_call(full, (), TurnRoom(full.cost)) == full
    assert fit_call(full, (), TurnRoom(full.cost - 1)) == replace(full, lifetime="5m")
    least = replace(full, lifetime="5m", searches=1)
    for room in (replace(full, lifetime="5m").cost - 1, least.cost):
        assert fit_call(full, (), TurnRoom(room)) == least


def search_tools(most: int) -> Envelope:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": most}
    return build_envelope(model=stored_turns.MODEL, max_tokens=2_000, system="s", tools=[search])


@pytest.mark.django_db
def test_a_call_is_prepared_anew_where_only_fewer_searches_fit() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    tokens = people_and_turns.sending(lease).estimated_tokens
    all_of_them = size_call(prices, tokens, 5).cost
    budget = people_and_turns.limited(user, all_of_them - 1)
    before = people_and_turns.everything()
    with pytest.raises(SearchesLimited, match="monthly budget") as limited:
        people_and_turns.opened(lease, search_tools(5))
    assert (limited.value.code, limited.value.searches) == ("budget", 1)
    assert people_and_turns.everything() == before
    wanted = {"user_id": user.pk, "prices": prices, "tokens": tokens, "wanted": 5}
    assert choose_searches(**wanted) == 1
    people_and_turns.opened(lease, search_tools(5).with_searches(1))
    Budget.objects.filter(pk=budget.pk).update(limit=3 * all_of_them)
    assert choose_searches(**wanted) == 5
    people_and_turns.opened(lease, search_tools(5))
    # Without a price no call is made at all.
    ModelPrice.objects.filter(kind="output").delete()
    bare = load_price_list(stored_turns.MODEL, timezone.now())
    assert choose_searches(**wanted | {"prices": bare}) == 5


@pytest.mark.django_db
def test_a_turn_that_goes_on_keeps_its_searches_where_it_was_the_last_one_allowed() -> None:
    user = people_and_turns.person()
    lease = people_and_turns.started_turn(user)
    people_and_turns.limited(user, 1, unit="turns")
    people_and_turns.opened(lease)
    prices = load_price_list(stored_turns.MODEL, timezone.now())
    assert [one.room for one in list_statuses(user.pk)] == [0]
    assert choose_searches(user_id=user.pk, prices=prices, tokens=1_000, wanted=5) == 5
