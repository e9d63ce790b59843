"""The values that the page of a transformation gets, ready to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from conversations.reductions.explanation import Explanation
from conversations.reductions.summary import SummaryCard
from conversations.reductions.word_diff import count_common


@dataclass(frozen=True, slots=True)
class Marked:
    """Both texts of a change: what they begin and end with alike, and what stands in between."""

    head: str
    gone: str
    put: str
    tail: str


@dataclass(frozen=True, slots=True)
class Change:
    """One changed block; `before` or `after` is "" where it was put back or dropped.

    `place` says where in the log it stands. `keep` is the original that can be sent in full again,
    if there is one.
    """

    title: str
    place: str
    before: str
    after: str
    characters_before: int
    characters_after: int
    keep: PinState | None = None

    @property
    def marked(self) -> Marked:
        head = count_common(self.before, self.after)
        gone, put = self.before[head:], self.after[head:]
        end = count_common(gone[::-1], put[::-1])
        tail = gone[len(gone) - end :]
        return Marked(self.before[:head], gone[: len(gone) - end], put[: len(put) - end], tail)


@dataclass(frozen=True, slots=True)
class Reduction:
    """One transformation as a page: why, what, and each change side by side."""

    seq: int
    kind: str
    kind_label: str
    outcome: str
    outcome_label: str
    note: str
    reason: str
    number: int
    threshold: int
    source: str
    setting: str
    policy: str
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int
    changes: tuple[Change, ...]
    created_at: datetime
    turn: int | None
    summary_cost_micros: int | None = None
    summary_model: str = ""
    summary_text: str = ""
    policy_name: str = ""
    extra: tuple[tuple[str, str], ...] = field(default=())
    #: The user name, where a person made the change.
    actor: str = ""
    can_restore: bool = False
    can_undo: bool = False
    #: Whether it is a manual change that can no longer be undone, because entries followed it.
    is_settled: bool = False
    why: Explanation | None = None
    summary: SummaryCard | None = None
    #: The transformations before and after it, by their numbers.
    previous: int | None = None
    next: int | None = None
    #: How often the model read something of it again since.
    recalls: int = 0


@dataclass(frozen=True, slots=True)
class PinState:
    """An original that can be pinned or excluded, by the id that the recall tool takes."""

    id: str
    is_pinned: bool = False
    is_left_out: bool = False
