"""The limits of a view: bytes and messages by the policy, tokens by the window."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import Trigger
from conversations.context.view.view import View

#: Percent of a limit to reduce to once it is passed.
LOW_WATER = 80
_TOKENS = mark_recorded(gettext_noop("%(number)s tokens exceeded %(most)s"))
_PASSED = {
    "max_conversation_bytes": mark_recorded(gettext_noop("%(number)s bytes exceeded %(most)s")),
    "max_conversation_messages": mark_recorded(
        gettext_noop("%(number)s messages exceeded %(most)s")
    ),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """Upper bounds that the view must reach, and the trigger.

    `is_window`: the request does not fit the window otherwise. `lists_chars` is the limit of the
    lists of dropped messages, in characters.
    """

    trigger: Trigger
    tokens: int
    size: int
    count: int
    is_window: bool
    lists_chars: int

    def meets(self, tokens: int, size: int, count: int = 0) -> bool:
        return tokens <= self.tokens and size <= self.size and count <= self.count

    @property
    def explanation(self) -> str:
        number, most = f"{self.trigger.number:,}", f"{self.trigger.threshold:,}"
        return _PASSED.get(self.trigger.setting, _TOKENS) % {"number": number, "most": most}


def find_goal(view: View, gauge: Gauge, policy: Policy, percent: int = 100) -> Goal | None:
    """Return the bounds to reach, or None when the view is within its limits."""
    triggers: list[Trigger] = []
    # A measure without a limit may stay as large as it is, plus short lists.
    limit = policy.lists_chars
    tokens, size, count = view.tokens + limit, view.size + 3 * limit, view.length
    lists_chars = min(limit, gauge.room // 8)
    if gauge.excess:
        triggers.append(Trigger(gauge.tokens, gauge.room, gauge.source, "window_reserve_tokens"))
        spare = gauge.room * (100 - percent) // 100
        tokens = view.tokens - gauge.excess - spare * 1_000 // gauge.permille
    most = policy.max_conversation_tokens
    if most and gauge.tokens > most:
        triggers.append(Trigger(gauge.tokens, most, gauge.source, "max_conversation_tokens"))
        over = gauge.tokens - most * percent // 100
        tokens = min(tokens, view.tokens - over * 1_000 // gauge.permille - 1)
    most = policy.max_conversation_bytes
    gate = gauge.window * policy.trim_threshold_percent // 100
    if most and view.size > most and (not gauge.has_report or gauge.tokens >= gate):
        triggers.append(Trigger(view.size, most, "counted", "max_conversation_bytes"))
        size = most * percent // 100
        lists_chars = min(lists_chars, most // 25)
    most = policy.max_conversation_messages
    if most and view.length > most:
        triggers.append(Trigger(view.length, most, "counted", "max_conversation_messages"))
        count = most * percent // 100
    if not triggers:
        return None
    return Goal(triggers[0], tokens, size, count, gauge.excess > 0, lists_chars)
