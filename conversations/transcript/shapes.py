"""The values that transcript templates get, ready to show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from conversations.context.steps.kinds import KINDS
from conversations.files.attachment_display import Attached
from conversations.log.tree import VersionPosition
from conversations.models import Transformation
from conversations.reductions.shapes import PinState
from conversations.toolbox.call_labels import (
    CallLabel,
    is_counted,
    name_calls,
    phrase_call,
    phrase_calls,
)
from conversations.transcript.next_message import NextMessage
from conversations.transcript.questions import Question


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where a page ends: its last turn (0 for none) and a short digest of the history up to it."""

    after: int = 0
    mark: str = ""


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
    is_left_out: bool = False
    #: When the call started; only while it runs.
    running_since: datetime | None = None
    #: The API ran the call: its result is part of the answer.
    is_served: bool = False
    #: The workspace file that the call read or wrote.
    file: str = ""
    #: What the sentence about the call names, such as a file or a site.
    subject: str = ""

    @property
    def is_running(self) -> bool:
        return self.state in ("planned", "started")

    @property
    def has_ended_well(self) -> bool:
        return self.state == "ok" and not self.is_error

    @property
    def has_failed(self) -> bool:
        """Whether it went wrong: what a person did not allow, or stopped, went as they wanted."""
        return self.is_error and self.state not in ("denied", "cancelled")

    @property
    def words(self) -> CallLabel:
        return phrase_call(self.name, self.subject, "error" if self.is_error else self.state)

    @property
    def aside(self) -> str:
        """The main input beside the sentence, unless that names it or it is only a number."""
        is_named = bool(self.subject) and self.brief.startswith(self.subject.removesuffix("…"))
        return "" if is_named or self.brief.isdigit() else self.brief


@dataclass(frozen=True, slots=True)
class Source:
    """A source that an answer cites: a web page, or a passage of a document at `place`.

    `url` is "" where it may not be linked.
    """

    number: int
    title: str
    url: str
    host: str
    quote: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """Where the context was reduced: a note for people, and the tokens of its messages.

    `can_restore`: the originals can be sent in full again; `can_undo`: the change can be undone.
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
    #: The policy setting that fired, or what a person requested.
    setting: str = ""

    @property
    def has_figures(self) -> bool:
        """Return whether to show token counts; a repair is not made to save tokens."""
        return self.outcome == "applied" and self.kind != "repair"

    @property
    def kind_label(self) -> str:
        return _(KINDS[self.kind].label)

    @property
    def outcome_label(self) -> str:
        return str(Transformation.Outcome(self.outcome).label)


@dataclass(frozen=True, slots=True)
class Fallback:
    """The names of the model that continues, and of the one that declined."""

    model: str
    declined: str


@dataclass(frozen=True, slots=True)
class Round:
    """One reply: the reductions before it, its text as safe HTML, its tools.

    While it is running (`is_live`), `html` holds the finished blocks and `tail` the rest.
    """

    number: int
    markers: tuple[Marker, ...] = ()
    thinking: str = ""
    html: str = ""
    tail: str = ""
    tools: tuple[ToolCard, ...] = ()
    is_live: bool = False
    tokens: int | None = None
    call_id: int | None = None
    #: The log numbers of the answer and of the results of its tools, to link to.
    seq: int | None = None
    results_seq: int | None = None
    sources: tuple[Source, ...] = ()
    #: From this round on another model answers.
    fallback: Fallback | None = None

    @property
    def tools_label(self) -> CallLabel:
        """Return one sentence about the tool calls of the round."""
        told = self._told
        if not told:
            return name_calls([card.name for card in self.tools])
        names, subjects = [card.name for card in told], [card.subject for card in told]
        return phrase_calls(names, subjects, is_running=self._is_running)

    @property
    def each_label(self) -> list[CallLabel]:
        """Return the sentences of the calls, each one once."""
        return list(dict.fromkeys(card.words for card in self.tools))

    @property
    def is_counted(self) -> bool:
        """Return whether that sentence says what the calls do."""
        return bool(self._told) and is_counted([card.name for card in self._told])

    @property
    def _is_running(self) -> bool:
        return any(card.is_running for card in self.tools)

    @property
    def _told(self) -> list[ToolCard]:
        """The calls of that sentence: all while one runs, then those that ended well."""
        return [card for card in self.tools if self._is_running or card.has_ended_well]


@dataclass(frozen=True, slots=True)
class Turn:
    """From a prompt to the end of its answer.

    `chip` is the ending unless the turn completed normally, `hint` an explanation of it.
    """

    number: int
    id: str
    prompt_html: str
    #: The files of the prompt.
    files: tuple[Attached, ...]
    rounds: tuple[Round, ...]
    state: str
    is_live: bool
    chip: str
    error: str
    #: While backing off: the next attempt, of how many, and when.
    attempt: int
    max_attempts: int
    retry_at: datetime | None
    created_at: datetime
    cost_micros: int
    #: The Markdown source of the answer, for copying.
    source: str = ""
    #: The limit a minute that it waits for until `retry_at`, in words.
    waits_for: str = ""
    can_retry: bool = False
    #: Pin states of the prompt and of the last answer; None while there is none.
    prompt_keep: PinState | None = None
    answer_keep: PinState | None = None
    #: The log number of the prompt, to link to.
    prompt_seq: int | None = None
    #: The turn before it on its path (0: none); `versions` is None when there are no others.
    parent: int = 0
    versions: VersionPosition | None = None
    #: The id under which another version is requested.
    next_id: str = ""
    #: Whether the prompt is generated, to continue a cut answer; whether this turn can be
    #: continued.
    is_continuation: bool = False
    can_continue: bool = False
    hint: str = ""
    #: Whether the turn ended because the request was too long; then the largest blocks are listed.
    is_too_long: bool = False
    #: The open questions while the turn waits for a person.
    questions: tuple[Question, ...] = ()

    @property
    def tokens(self) -> int:
        """The tokens that came out of all its calls."""
        return sum(one.tokens or 0 for one in self.rounds)

    @property
    def last_seq(self) -> int | None:
        """Return the log number of the last answer whose call can be inspected."""
        return next((one.seq for one in reversed(self.rounds) if one.call_id), None)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A page of turns; `earlier` is the number of the oldest turn shown when older ones exist.

    On a page that is not the newest, `later` is the last turn shown when later ones have ended, and
    `newest` the newest turn that had ended when the page was made: what follows it comes through
    the socket. `branch` is a turn of the page's path when that is not the shown one.
    """

    turns: tuple[Turn, ...]
    earlier: int | None
    later: int | None = None
    newest: int = 0
    branch: int | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    id: str
    title: str
    updated_at: datetime
    is_live: bool
    #: Whether the turn waits for a person's decision.
    is_waiting: bool = False
    is_current: bool = False
    is_starred: bool = False
    is_archived: bool = False
    #: When the conversation will be erased; None while it is not in the trash.
    erase_at: datetime | None = None
    #: Whether a legal hold keeps it, and the rule that put it into the trash; of the trash alone.
    is_held: bool = False
    rule: str = ""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder in the list; `rows` while it is open there: its newest conversations and that of the
    page."""

    id: str
    name: str
    is_open: bool = False
    #: Whether the conversation of the page is in it.
    is_current: bool = False
    rows: tuple[ConversationRow, ...] = ()
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Sidebar:
    """Conversations under date headings: ("Today", rows), newest first.

    `after` is the cursor of the last row when there are more; `heading` the one that the previous
    page ended under. What is starred or in a folder stands there alone, on the first page. The list
    of one `folder` has its conversations under no heading.
    """

    groups: tuple[tuple[str, tuple[ConversationRow, ...]], ...] = ()
    after: str = ""
    heading: str = ""
    archived: bool = False
    starred: tuple[ConversationRow, ...] = ()
    folders: tuple[FolderRow, ...] = ()
    folder: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.groups or self.starred or self.folders)


@dataclass(frozen=True, slots=True)
class Tick:
    """A threshold on the meter: `percent` of its width, and what happens there."""

    percent: int
    label: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Meter:
    """How full the context is; `source` is reported, estimated or none (no call yet).

    `cost_micros` and `calls` are those of the whole conversation, for every purpose.
    """

    tokens: int
    window: int
    percent: int
    source: str
    cached_percent: int | None
    ticks: tuple[Tick, ...] = ()
    cost_micros: int = 0
    calls: int = 0
    #: None while an answer is running, and where there is no basis for a forecast.
    next: NextMessage | None = None

    @property
    def limit(self) -> int:
        """The size from which something is reduced; the window where nothing is before it."""
        is_full = self.next is not None and self.next.is_full
        return self.window if is_full or not self.ticks else self.ticks[0].tokens or self.window

    @property
    def level(self) -> int:
        """The size as a percentage of the limit: of a large window little is ever used."""
        return min(100, self.tokens * 100 // self.limit)

    @property
    def sent_tokens(self) -> int:
        """The size of the next request, after the reduction that is forecast before it."""
        return self.tokens if self.next is None else self.next.now.tokens


@dataclass(frozen=True, slots=True)
class Live:
    """The running answer: finished blocks and unfinished tail as HTML, thinking as text."""

    turn: int
    round: int
    thinking: str = ""
    closed: str = ""
    tail: str = ""
