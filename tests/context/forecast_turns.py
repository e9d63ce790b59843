"""Generated turns in which a forecast is made before each message and compared with the deed.

`python -m tests.context.forecast_turns [COUNT] [FIRST]` plays turns and prints what they met.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random

from conversations.context.errors import WindowError
from conversations.context.policy.continuation import Continuation
from conversations.context.policy.gauge import Report, measure_context
from conversations.context.policy.in_full import build_full_policy
from conversations.context.policy.policy import PRESETS, build_policy
from conversations.context.steps.kinds import ASKS_MODEL, KINDS
from conversations.context.steps.next_call import LONG, NextCall, find_quiet_limit, forecast_message
from conversations.context.steps.protocol import SummaryReply, SummaryWanted
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View
from tests.context.samples import Shell, answer, keeping, prompt, round_of, situation, view_of
from tests.context.test_defects import grown
from tests.context.test_promise import PAUSES, PRICES

#: Turns of one conversation, and of the command.
TURNS, ALL = 8, 10_000
#: Thresholds at which conversations end up near their limit.
_NEAR = {
    "adaptive": {"keep_below_tokens": 12_000, "minimum_gain_tokens": 2_000},
    "thrifty": {"minimum_gain_tokens": 1_000},
    "classic": {"input_token_budget": 8_000, "compaction_threshold_tokens": 14_000},
    "tool-budget": {"input_token_budget": 10_000},
    "rebuild": {"compaction_threshold_tokens": 12_000},
    "staged": {"compaction_threshold_tokens": 12_000},
    "gated-trim": {"max_conversation_bytes": 60_000, "trim_threshold_percent": 20},
    "structured": {"max_conversation_tokens": 16_000},
    "native": {"input_token_budget": 9_000, "compaction_threshold_tokens": 15_000},
    "off": {},
}


class Chat:
    """One conversation, named by its seed; `met` counts what was forecast."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(f"foreseen {seed}")
        self.window = chance.choice((32_000, 64_000, 200_000))
        name = chance.choice(sorted(PRESETS))
        self.policy = build_policy(name, _NEAR[name] if chance.random() < 0.8 else {})
        if chance.random() < 0.1:
            self.policy = build_full_policy(self.policy)
        rates = chance.choice(PRICES)
        if rates and chance.random() < 0.2:
            rates = replace(rates, cliff=chance.choice((10_000, 30_000)))
        self.known = situation(
            window=self.window,
            overhead=chance.choice((0, 1_500)),
            rates=rates,
            cache_lifetime=chance.choice((300, 3_600)),
            continuation=Continuation((chance.randint(10, 990),) * 12),
            clears=name == "native",
            compacts=False,
        )
        self.view = view_of(
            prompt("Where do we begin?"), answer("Here. " * chance.randint(1, 4_000))
        )
        self.met: Counter[str] = Counter()

    def live(self) -> Counter[str]:
        """Live its turns; raises AssertionError where a forecast and the deed differ."""
        for _ in range(TURNS):
            if not self.take_turn():
                break
        return self.met

    def take_turn(self) -> bool:
        """Forecast, wait, send and answer; return whether the conversation can go on."""
        if self.chance.random() < 0.4:
            self._let_grow()
        forecasts = [
            forecast_message(self.view, replace(self.known, cache_age=age), self.policy)
            for age in (0, self.known.cache_lifetime)
        ]
        pause = self.chance.choice(PAUSES) + self.chance.randint(0, 1)
        said = forecasts[pause >= self.known.cache_lifetime]
        self._demand_quiet(said)
        self.view = grown(self.view, prompt("word " * (self.chance.randint(1, LONG) // 5)))
        done = self._send(pause)
        self._compare(said, done)
        for n in range(self.chance.choice((0, 0, 1, 3))):
            if done is None:
                return False
            page = "a line of a page\n" * self.chance.choice((3, 100, 700))
            self.view = grown(self.view, *round_of(f"t{self.view.length}.{n}", page))
            done = self._send(0)
        self.view = grown(self.view, answer("so it is said " * self.chance.randint(1, 300)))
        return done is not None

    def _let_grow(self) -> None:
        """Let other turns come: until now another policy was in force, or they were imported."""
        most = self.chance.choice((2_000, 8_000, 20_000, self.window * 9 // 10))
        until = self.view.tokens + most
        while self.view.tokens < until:
            n, page = self.view.length, "a line of a page\n" * self.chance.choice((3, 100, 900))
            said = prompt("word " * self.chance.randint(1, 200)), answer("so it is said " * 20)
            self.view = grown(self.view, said[0], *round_of(f"t{n}", page), said[1])
        if self.chance.random() < 0.7:
            self._report(self.view, self.view.tokens)

    def _report(self, view: View, tokens: int) -> None:
        tokens = tokens * self.chance.randint(95, 105) // 100
        report = Report(tokens, view.tokens, self.known.overhead, view.edits)
        calls = sum(message.kind == "answer" for message in view.messages)
        self.known = replace(self.known, report=report, calls=max(calls, self.known.calls + 1))

    def _demand_quiet(self, said: NextCall) -> None:
        limit = find_quiet_limit(self.policy, self.window, self.known.rates)
        known = self.known
        gauge = measure_context(self.view, known.overhead, known.report, known.window)
        if gauge.has_report and gauge.tokens <= limit:
            assert (said.kinds, said.is_refused, said.is_certain) == ((), False, True)
            self.met["known without reading"] += 1

    def _compare(self, said: NextCall, done: list[str] | None) -> None:
        self.met["turns"] += 1
        if not said.is_certain:
            self.met["not certain"] += 1
            return
        self.met[said.action] += 1
        assert said.is_refused == (done is None)
        assert done is None or _until_asked(said.kinds) == _until_asked(done)

    def _send(self, pause: int) -> list[str] | None:
        """Prepare a call, and report it; None where it does not fit."""
        shell = Shell(writes=self._write)
        known = replace(self.known, cache_age=pause)
        try:
            done = shell.prepare(self.view, known, self.policy)
        except WindowError:
            return None
        for change in filter(_is_model_asked, shell.records):
            is_applied = change.outcome == "applied"
            self.known = replace(
                self.known,
                rejected=0 if is_applied else self.known.rejected + 1,
                rejected_at=0 if is_applied else change.tokens_before,
            )
        self.view = done.view
        self._report(self.view, done.gauge.seen)
        return [change.kind for change in shell.records if _is_reduction(change)]

    def _write(self, wanted: SummaryWanted) -> SummaryReply | None:
        """Write the summary, or fail now and then."""
        return keeping(wanted) if self.chance.random() < 0.8 else None


def _is_model_asked(change: Transformation) -> bool:
    return change.kind in ASKS_MODEL


def _is_reduction(change: Transformation) -> bool:
    if change.kind == "clearing":
        return bool(change.reason)
    return KINDS[change.kind].phase in ("reduce", "limit")


def _until_asked(kinds: tuple[str, ...] | list[str]) -> list[str]:
    """Return what is done up to the first text of the model, on which the rest depends."""
    found: list[str] = []
    for kind in kinds:
        found.append(kind)
        if kind in ASKS_MODEL:
            break
    return found


def play(turns: int, first: int = 0) -> Counter[str]:
    """Play conversations until so many turns are compared."""
    met: Counter[str] = Counter()
    seed = first
    while met["turns"] < turns:
        try:
            met += Chat(seed).live()
        except AssertionError as error:
            raise AssertionError(f"chat {seed}") from error
        seed += 1
    return met


def main(count: int = ALL, first: int = 0) -> None:
    """Play so many turns and print what they met."""
    started = time.monotonic()
    met, say = play(count, first), partial(print, flush=True)
    for name, times in sorted(met.items()):
        say(f"{times:8,} {name}")
    say(f"{met['turns']:,} turns, none done otherwise, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
