"""Values of every shape that templates get, plain or hostile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from conversations.agent import events
from conversations.budgets.effective import Rule
from conversations.budgets.notices import BudgetPill, Limits, Notice
from conversations.library.shared_page import SharedPage, SharedRound, SharedTurn
from conversations.log.tree import VersionPosition
from conversations.models import Conversation, SharedLink
from conversations.reductions.model_choice import Level, ModelChoice, ModelOption
from conversations.reductions.shapes import Change, PinState, Reduction
from conversations.rendering import render_markdown, render_plain
from conversations.transcript.queue import Queue, Waiting
from conversations.transcript.shapes import (
    Bookmark,
    ConversationRow,
    Fallback,
    FolderRow,
    Marker,
    Meter,
    Round,
    Sidebar,
    Tick,
    ToolCard,
    Transcript,
    Turn,
)

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
ID = UUID("6f1f7a52-3c1e-4a58-9d0a-0d6f0c3f7a10")
ANSWER = """Here is **what** I found:

| role | pay |
|:--|--:|
| dev | 650 |

```python
x = 1
```"""


def conversation(words: str = "Job search") -> Conversation:
    return Conversation(pk=1, public_id=ID, title=words, model="claude-sonnet-5-5")


def tool(words: str = "notes.md", *, number: int = 1, state: str = "ok") -> ToolCard:
    return ToolCard(
        id=f"toolu_{number}{words if words != 'notes.md' else ''}",
        name="read_file" if words == "notes.md" else words,
        brief=words,
        input=f'{{"path": "{words}"}}',
        state=state,
        output=words,
        is_cut=True,
        is_error=state == "error",
        milliseconds=None if state == "started" else 420,
        is_pinned=number == 2,
    )


def marker(words: str = "14 tool results shortened", *, outcome: str = "applied") -> Marker:
    url, is_applied = f"/c/{ID}/inspect/events/7/", outcome == "applied"
    return Marker(7, "compaction", outcome, words, 96_301, 31_020, url, can_restore=is_applied)


def round_(
    words: str = "notes.md", *, number: int = 1, is_live: bool = False, seq: int | None = None
) -> Round:
    text = ANSWER if words == "notes.md" else words
    return Round(
        number=number,
        markers=(marker(words), marker(words, outcome="rejected")),
        thinking=words,
        html=render_markdown(text),
        tail=render_markdown(words) if is_live else "",
        tools=(tool(words), tool(words, number=2, state="error")),
        is_live=is_live,
        tokens=1_234,
        call_id=3,
        seq=seq,
        fallback=Fallback(words, words),
    )


def turn(words: str = "notes.md", *, number: int = 1, state: str = "done") -> Turn:
    is_live = state not in {"done", "failed", "cancelled", "interrupted"}
    return Turn(
        number=number,
        id="t",
        prompt_html=render_plain(words),
        files=(),
        rounds=(
            round_(words),
            round_(words, number=2, is_live=is_live, seq=100 + number),
        ),
        state=state,
        is_live=is_live,
        chip="" if state == "done" else words,
        error=words if state == "failed" else "",
        attempt=2,
        max_attempts=4,
        retry_at=NOW if state == "backoff" else None,
        created_at=NOW,
        cost_micros=13_250,
        source=ANSWER if words == "notes.md" else words,
        can_retry=state in {"failed", "interrupted", "cancelled"},
        prompt_seq=number,
        parent=number - 1,
        versions=VersionPosition(2, 3, 1, 9),
        next_id="11111111-1111-5111-8111-111111111111",
        can_continue=state == "cancelled",
        prompt_keep=PinState(words),
        answer_keep=PinState(words, is_pinned=True),
    )


def meter(words: str = "tool results are compacted") -> Meter:
    return Meter(41_000, 200_000, 20, "reported", 83, (Tick(20, words), Tick(40, words)))


def choice(words: str = "Sonnet 5.5") -> ModelChoice:
    option = ModelOption(words, words, words, 200_000, 2_000_000, None, is_chosen=True)
    levels = (Level("", words, words, is_default=True, is_chosen=False),) * 2  # type: ignore[arg-type]
    return ModelChoice(words, words, (option,), levels, words, words, 10_000_000, is_gone=True)


def budget(words: str = "today") -> BudgetPill:
    return BudgetPill(True, 580_000, 5_000_000, 11, words, NOW, is_over=False, source=words, held=9)


def notice(words: str, *, is_over: bool = False) -> Notice:
    rule = Rule(1, "group", "pool", "money", "day", "UTC", 5_000_000, group=words, note=words)
    return Notice(rule, 1, 50, NOW, 2_600_000, 0, 5_000_000, NOW, is_over)


def limits(words: str = "Research") -> Limits:
    return Limits(budget(words), (notice(words),), notice(words, is_over=True))


def queue(words: str = "And then?", *, is_live: bool = True) -> Queue:
    return Queue((Waiting(str(ID), words, 0), Waiting(str(ID), words, 2)), is_live)


def reduction(words: str = "14 tool results shortened") -> Reduction:
    change = Change(words, words, words, words, 38_211, 500, PinState(words))
    return Reduction(
        seq=7,
        kind="compaction",
        kind_label="compaction (shorten old tool results)",
        outcome="applied",
        outcome_label=words,
        note=words,
        reason=words,
        number=96_301,
        threshold=80_000,
        source="reported",
        setting="input_token_budget",
        policy=words,
        tokens_before=96_301,
        tokens_after=31_020,
        bytes_before=300_000,
        bytes_after=90_000,
        changes=(change, replace(change, after=""), replace(change, before="", keep=None)),
        created_at=NOW,
        turn=1,
        summary_cost_micros=4_000,
        summary_model="claude-sonnet-5-5",
        summary_text=words,
        extra=((words, words),),
        actor=words,
        can_restore=True,
        previous=3,
        next=9,
    )


def sidebar(words: str = "Job search") -> Sidebar:
    row = ConversationRow(str(ID), words, NOW, is_live=True, is_current=True)
    other = "7f1f7a52-3c1e-4a58-9d0a-0d6f0c3f7a10"
    starred = replace(row, id=other, is_live=False, is_current=False, is_starred=True)
    folders = (
        FolderRow(
            str(ID),
            words,
            is_open=True,
            rows=(replace(starred, id=str(UUID(int=1))),),
            has_more=True,
        ),
        FolderRow(other, words, is_current=True),
    )
    return Sidebar(((words, (row,)),), starred=(starred,), folders=folders)


def chat(words: str = "notes.md") -> dict[str, Any]:
    """Return the context of the chat page."""
    return {
        "conversation": conversation(words),
        "sidebar": sidebar(words),
        "transcript": Transcript((turn(words), turn(words, number=2, state="failed")), 1),
        "meter": meter(words),
        "limits": limits(words),
        "bookmark": Bookmark(2, "0123456789ab"),
        "queue": queue(words),
        "live_turns": (turn(words, number=3, state="running"),),
        "choice": choice(words),
        "tools": [("read_file", words)],
        "can_review": True,
        "example_prompts": (words,),
        "draft": words,
        "error": words,
    }


def shared(words: str = "notes.md") -> dict[str, Any]:
    """The page of a link, with everything that one can show."""
    full = turn(words)
    rounds = tuple(
        SharedRound(one.html, one.sources, one.tools, one.fallback) for one in full.rounds
    )
    shown = SharedTurn(
        1, full.prompt_html, full.files, (*rounds, SharedRound("", is_left_out=True)), False, words
    )
    page = SharedPage(words, (shown, replace(shown, is_left_out=True)), 2)
    link = SharedLink(conversation=conversation(words))
    return {"page": page, "token": "token", "number": 1, "is_owner": True, "link": link}


def event_context(event: events.Event, words: str = "notes.md") -> dict[str, Any]:
    """Return the context of an event's template."""
    return {
        "event": event,
        "conversation": conversation(words),
        "turn": turn(words, state="failed" if isinstance(event, events.TurnClosed) else "running"),
        "round": round_(words, is_live=True),
        "queue": queue(words),
        "meter": meter(words),
        "limits": limits(words),
        "choice": choice(words),
    }


def event(kind: type[events.Event], words: str = "notes.md") -> events.Event:
    """Make an event of a class; its texts are `words`."""
    names = kind.__dataclass_fields__
    values: dict[str, Any] = {name: 1 if name in {"turn", "round"} else words for name in names}
    return kind(**values)
