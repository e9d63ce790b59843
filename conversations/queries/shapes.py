"""What templates are given: plain values, ready to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ToolCard:
    """One tool call: `brief` is its main input on one line; `output` is cut for display."""

    id: str
    name: str
    brief: str
    input: str
    state: str
    output: str
    is_cut: bool
    is_error: bool
    milliseconds: int | None
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    """Where the context was reduced, in plain words with its numbers.

    `can_restore`: what it took can be sent in full again; `can_undo`: it can be taken back.
    """

    seq: int
    kind: str
    outcome: str
    note: str
    tokens_before: int
    tokens_after: int
    url: str
    can_restore: bool = False
    can_undo: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """An original that can be pinned, by the id that recall takes."""

    id: str
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One reply: what was reduced before it, its text as safe HTML, its tools.

    While it is on its way (`is_live`), `html` holds the finished blocks and `tail` the rest.
    """

    number: int
    markers: tuple[Marker, ...] = ()
    thinking: str = ""
    html: str = ""
    tail: str = ""
    tools: tuple[ToolCard, ...] = ()
    is_live: bool = False
    tokens: int | None = None
    cost_micros: int | None = None
    call_id: int | None = None
    #: The number of its answer, to link to.
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt to its last word. `chip` says in words how it ended when that was not plainly."""

    number: int
    id: str
    prompt_html: str
    #: data: URLs of the images of the prompt.
    images: tuple[str, ...]
    rounds: tuple[Round, ...]
    state: str
    is_live: bool
    chip: str
    error: str
    #: While backing off: which attempt comes next, of how many, and when.
    attempt: int
    max_attempts: int
    retry_at: datetime | None
    created_at: datetime
    cost_micros: int
    #: The source of the answer, for copying.
    source: str = ""
    can_retry: bool = False
    #: The prompt and the last answer as what can be pinned; None while there is none.
    prompt_keep: Keep | None = None
    answer_keep: Keep | None = None
    #: The number of the prompt, to link to.
    prompt_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A page of turns; `earlier` is the number of the oldest turn shown when more exist.

    Of a page that is not the newest, `later` is that of the last shown when more have ended, and
    `newest` that of the last that has.
    """

    turns: tuple[Turn, ...]
    earlier: int | None
    later: int | None = None
    newest: int = 0


@dataclass(frozen=True, slots=True)
class ConversationRow:
    id: str
    title: str
    updated_at: datetime
    is_live: bool
    is_current: bool = False
    is_pinned: bool = False
    is_archived: bool = False
    #: When it is erased; None while it is not in the trash.
    erase_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sidebar:
    """Conversations under date headings: ("Today", rows), newest first.

    `after` is the place of the last row when there are more; `heading` the one the page before
    ended under.
    """

    groups: tuple[tuple[str, tuple[ConversationRow, ...]], ...] = ()
    after: str = ""
    heading: str = ""
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """A threshold on the meter: `percent` of its width, and what happens there."""

    percent: int
    label: str


@dataclass(frozen=True, slots=True)
class Meter:
    """How full the context is; `source` is reported, counted, estimated or none (no call yet)."""

    tokens: int
    window: int
    percent: int
    source: str
    cached_percent: int | None
    ticks: tuple[Tick, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetPill:
    """What is left of the tightest budget; None of them limits when `is_limited` is false."""

    is_limited: bool
    spent_micros: int
    limit_micros: int
    percent: int
    label: str
    resets_at: datetime | None
    is_over: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One changed block, before and after; one of them is empty where it was dropped or put back.

    `keep` is the original that can be sent in full again, if there is one.
    """

    title: str
    before: str
    after: str
    characters_before: int
    characters_after: int
    keep: Keep | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """One transformation as a page: why, what, and each change side by side."""

    seq: int
    kind: str
    kind_label: str
    outcome: str
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
    #: Who asked for it, where a person did.
    actor: str = ""
    can_restore: bool = False
    can_undo: bool = False
