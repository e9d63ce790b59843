"""The input of one turn's run: the job with its limits, and the conversation as loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from conversations.context.policy.cache_lifetime import CachedPrefix
from conversations.context.policy.continuation import EVEN, Continuation
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import Policy
from conversations.context.view.cost_decision import Rates
from conversations.context.view.envelope import Envelope
from conversations.context.view.view import Message, View
from conversations.context.view.view_cache import CALL_IDS_FOLD


@dataclass(frozen=True, slots=True)
class Caps:
    """Limits of one turn; waits in seconds."""

    rounds: int = 40
    tool_calls: int = 200
    parallel_tools: int = 8
    attempts: int = 4
    backoff_seconds: float = 60.0
    overflows: int = 3
    pauses: int = 5
    #: Consecutive rounds in which no tool call could be run.
    wrong_rounds: int = 3
    #: The whole turn.
    seconds: int = 900


@dataclass(frozen=True, slots=True)
class Job:
    """One turn to run; `envelope` is that of its replies.

    `max_output` is the model's output limit if the request's limit may be raised; 0 if it may not.
    """

    model: str
    window: int
    policy: Policy
    envelope: Envelope
    summary_envelope: Callable[[str, int], Envelope]
    caps: Caps = field(default_factory=Caps)
    max_output: int = 0
    #: Prices of the model, used to weigh a reduction's cost and savings; None: unknown.
    rates: Rates | None = None
    #: Prices of the model that writes summaries; None: those of the model.
    summary_rates: Rates | None = None
    #: Whether the API clears tool results and compacts on demand for this model.
    clears: bool = False
    compacts: bool = False
    #: How long conversations of this site continue.
    continuation: Continuation = EVEN
    #: The job for the fallback model if this model declines; None: the turn ends.
    fallback: Job | None = None

    def limit_searches(self, most: int) -> Job:
        """Return the same job with at most so many web searches in each reply."""
        return replace(self, envelope=self.envelope.with_searches(most))


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """The conversation as loaded: the view, and what is known about the last call."""

    view: View
    report: Report | None
    bound_to: str
    rejected: int
    #: The size of the view at the last rejected summary; 0: none since the last applied one.
    rejected_at: int = 0
    #: The estimate of system prompt and tools in the last request; None: there was none.
    overhead: int | None = None
    #: Answers on the path, which is the number of calls that the conversation has made.
    calls: int = 0
    #: When this conversation last called this model, in seconds since 1970; 0: never, so the prompt
    #: cache has nothing of it.
    called_at: float = 0.0
    #: What the API keeps of that call's request; seconds between the last turns.
    cached: CachedPrefix = field(default_factory=CachedPrefix)
    pauses: tuple[int, ...] = ()
    #: The number of the first message that was changed since that call; None: none was.
    edited_from: int | None = None
    #: The model that made the compaction block in view; "" when there is none or it is unknown.
    compacted_by: str = ""
    #: Decisions of people on tool calls, as (call id, verdict), oldest first.
    decisions: tuple[tuple[str, str], ...] = ()

    def add_decisions(self, policy: Policy) -> Policy:
        """Return the policy with people's decisions, which the record of actions names."""
        return replace(policy, decisions=policy.decisions + self.decisions)


def list_call_ids(view: View) -> set[str]:
    """Return the ids of all tool calls in view, those of the API's own tools included."""
    ids: set[str] = view.fold_cached(CALL_IDS_FOLD, _no_ids, _read_ids)
    return ids


def _no_ids() -> set[str]:
    return set()


def _read_ids(ids: set[str], message: Message) -> None:
    ids.update(call.id for call in message.shape.calls)
    ids.update(message.shape.server_calls)
