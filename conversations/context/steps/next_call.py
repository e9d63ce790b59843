"""Forecast what will be done before a call, and how much of its request the cache can return.

`forecast_call` runs `pipeline.prepare`, which also decides at the call: with the same view,
situation and policy both give the same result. Replies that only the model or the API can give are
simulated: a summary has the required names, a count is not available. In these cases, and where the
length of the message would change the result, the forecast is marked as uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from conversations.context.errors import WindowError
from conversations.context.pipeline import prepare
from conversations.context.policy.gauge import measure_context
from conversations.context.policy.policy import Policy
from conversations.context.steps import open_calls
from conversations.context.steps.kinds import ASKS_MODEL, KINDS, TransformationKind
from conversations.context.steps.protocol import (
    CompactionReply,
    CompactionWanted,
    EngineRequest,
    Prepared,
    Reply,
    Situation,
    SummaryReply,
    SummaryWanted,
)
from conversations.context.view import wire
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.cost_decision import Rates
from conversations.context.view.edits import Transformation
from conversations.context.view.prefix import count_unedited
from conversations.context.view.view import Message, View

#: `compact`: old results are shortened or cleared; `trim`: messages are left out; `summarise`:
#: the model writes a text in their place; `refuse`: the request does not fit and cannot be reduced.
Action = Literal["nothing", "compact", "trim", "summarise", "refuse"]
#: Phases that are shown to people; the others keep the API's rules or shape unsent results.
_REDUCING = ("reduce", "limit")
#: Lengths of the messages that a forecast is made for, in characters: one word, and a long message.
SHORT, LONG = 5, 4_000
#: More tokens than such a message has.
_ROOM = 6_000
#: Percent of the room above which a request may be counted, and of a price cliff above which it
#: causes a reduction.
_DOUBTFUL, _CLIFF = 90, 96
#: Characters of the simulated text of the model.
_WRITTEN = 3_000


@dataclass(frozen=True, slots=True)
class NextCall:
    """What is done before a call, in order, and the sizes of its request in tokens.

    `kept` of `tokens_after` are unchanged at the beginning, so the cache can return them, and
    `full_kept` of `tokens`, if the request were sent in full.
    `summary_input` is what a summary reads on a prompt of its own, `summary_cached` what the cache
    returns where it goes on from the conversation, and `compaction_input` what the API compacts.
    Up to a summary `kinds` is certain; what follows depends on its text.
    """

    kinds: tuple[TransformationKind, ...]
    tokens: int
    tokens_after: int
    kept: int
    summary_input: int = 0
    summary_cached: int = 0
    compaction_input: int = 0
    is_refused: bool = False
    is_certain: bool = True
    full_kept: int = 0
    #: How long the API will keep what the request adds to its cache.
    lifetime: Lifetime = "5m"

    @property
    def action(self) -> Action:
        """The most severe of the actions."""
        if self.is_refused:
            return "refuse"
        if any(kind in ASKS_MODEL for kind in self.kinds):
            return "summarise"
        if "trim" in self.kinds:
            return "trim"
        return "compact" if self.kinds else "nothing"


def forecast_call(view: View, situation: Situation, policy: Policy) -> NextCall:
    """Return what `prepare` does to this view; raises RuleError as it does."""
    run = _DryRun()
    steps = prepare(view, situation, policy)
    reply: Reply = None
    try:
        while True:
            reply = run.answer(steps.send(reply))
    except StopIteration as stop:
        return run.describe(view, situation, stop.value)
    except WindowError as error:
        size = error.tokens
        return NextCall((), size, size, 0, is_refused=True, full_kept=size)


def forecast_message(view: View, situation: Situation, policy: Policy) -> NextCall:
    """Return what is done before the answer to the next message, if that has a usual length."""
    short, long = (
        forecast_call(view.append(_stand_in(view, size)), situation, policy)
        for size in (SHORT, LONG)
    )
    is_same = (short.kinds, short.is_refused) == (long.kinds, long.is_refused)
    return replace(short, is_certain=is_same and short.is_certain and long.is_certain)


def find_quiet_limit(policy: Policy, window: int, rates: Rates | None) -> int:
    """Return the last reported size, in tokens, up to which no usual message causes a reduction.

    It is computed without reading the conversation; 0 if the conversation must be read.
    """
    limits = [policy.room(window) * _DOUBTFUL // 100]
    if rates and rates.cliff and policy.compact_above_percent:
        limits.append(rates.cliff * _CLIFF // 100)
    if policy.compact_above_percent and not policy.is_in_full:
        limits.append(policy.promise(window))
    if policy.max_conversation_bytes:
        limits.append(window * policy.trim_threshold_percent // 100)
    if policy.compaction_enabled:
        limits.append(policy.compaction_threshold_tokens)
    limits += filter(None, (policy.input_token_budget, policy.max_conversation_tokens))
    if policy.max_conversation_messages or policy.round_summary_every:
        return 0
    return max(0, min(limits) - _ROOM)


def _stand_in(view: View, size: int) -> Message:
    seq = max((message.seq for message in view.messages), default=0) + 1
    block = {"type": "text", "text": "word " * (size // 5)}
    return Message.parse(seq, "prompt", wire.encode([block]))


class _DryRun:
    """Answers the requests of `prepare` as far as possible, and keeps its proposals."""

    def __init__(self) -> None:
        self.kinds: list[TransformationKind] = []
        self.summary_input = self.summary_cached = self.compaction_input = 0
        self.is_certain = True

    def answer(self, request: EngineRequest) -> Reply:
        match request:
            case Transformation():
                if _is_reduction(request):
                    self.kinds.append(request.kind)
            case SummaryWanted():
                if request.continued is None:
                    self.summary_input += len(request.text) // 3
                self.summary_cached += request.cached
                return SummaryReply(_write_summary(request), "end_turn")
            case CompactionWanted():
                self.compaction_input += request.tokens
                return CompactionReply(_BLOCK, "compaction")
            case _:
                # A count is free, but its result is not known yet.
                self.is_certain = False
        return None

    def describe(self, view: View, situation: Situation, done: Prepared) -> NextCall:
        """Return the forecast; estimated sizes are scaled like the gauge's."""
        permille, sent = done.gauge.permille, done.view.messages
        pairs = zip(view.messages, sent, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0].content == pair[1].content, pairs))
        # What was changed since the last request was never sent like this.
        known = count_unedited(view.messages, situation.edited_from)
        same = min(same, known)
        behind = sum(message.tokens for message in sent[same:]) * permille // 1000
        before = measure_context(view, situation.overhead, situation.report, situation.window)
        changed = sum(message.tokens for message in view.messages[known:]) * before.permille // 1000
        return NextCall(
            tuple(self.kinds),
            before.tokens,
            done.gauge.seen,
            max(0, done.gauge.seen - behind),
            self.summary_input,
            self.summary_cached,
            self.compaction_input,
            is_certain=self.is_certain,
            full_kept=max(0, before.tokens - changed),
            lifetime=done.lifetime,
        )


def _is_reduction(change: Transformation) -> bool:
    is_clearing = change.kind == "clearing" and bool(change.reason)
    # Calls that were cut off are left out by a rule of the API, whatever the size.
    is_reducing = KINDS[change.kind].phase in _REDUCING and change.note != open_calls.NOTE
    return is_clearing or is_reducing


_BLOCK = wire.encode({"type": "compaction", "content": "summary " * 300, "signature": "c3RhbmQ="})


def _write_summary(request: SummaryWanted) -> str:
    """Write a text of about the length of a summary that has the required names."""
    names = "\n".join(request.keep)
    return f"{names}\n{'summary ' * ((min(_WRITTEN, request.max_tokens * 2) - len(names)) // 8)}"
