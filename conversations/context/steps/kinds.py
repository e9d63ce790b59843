"""The registry of transformation kinds: one row for each, from which all other lists derive.

A row names the step that proposes the kind, when the pipeline runs it, what it may do and its words
for people. Within the phases `shape`, `reduce` and `limit` the steps run in the order of the rows.
A name without a row, or an incomplete row, fails when this module is imported; a missing step fails
when the pipeline is imported. This module imports no other module of the engine, so every step can
read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Literal, get_args

from conversations.context.translation import gettext_noop

#: The names as they are stored: never renamed, and none is ever removed.
TransformationKind = Literal[
    "ingest", "compaction", "rounds", "summary", "trim", "shrink", "rebind", "repair", "restore",
    "clearing",
]  # fmt: skip
#: When a step runs. `shape`: first, on results that were never sent; `reduce`: above a threshold of
#: the policy; `limit`: repeatedly, until the view is within its limits. The pipeline calls the
#: steps of `send` by name, last before the request; those of `person` run at a person's request.
Phase = Literal["shape", "reduce", "limit", "send", "person"]
#: Whether an applied transformation may make the view larger.
Growth = Literal["never", "by_person", "always"]
#: What happens to an original that it removes: a summary covers it, it was left out, or it is
#: thinking, which is signed over what precedes it and is dropped when that changes.
Fate = Literal["summary", "left out", "thinking"]


@dataclass(frozen=True, slots=True)
class RegisteredKind:
    """One kind of transformation."""

    name: TransformationKind
    #: Its name in the admin; translated.
    label: str
    #: What it does, for people; translated where it is shown.
    words: str
    phase: Phase
    #: The function that proposes it, as `module:function` of this package. In the first three
    #: phases it takes (view, gauge, policy) and returns a Transformation or None; with `asks_model`
    #: it is a generator of `SummaryWanted`.
    step: str
    #: For `limit`: a second function, run if the first ones of all kinds were not enough.
    harsher: str = ""
    #: Whether the model writes its text; rejected texts are counted.
    asks_model: bool = False
    #: The name of its own block in the first message; "": it adds none. Translated.
    block: str = ""
    #: Whether a person may restore the originals that it removed.
    can_restore: bool = False
    growth: Growth = "never"
    fate: Fate = "left out"
    #: What a person can do once their change of this kind can no longer be taken back; translated.
    instead: str = ""
    #: Whether a site's own code may veto it.
    may_veto: bool = True


ROWS = (
    RegisteredKind(
        "ingest",
        label=gettext_noop("ingest"),
        words=gettext_noop("shortened a tool result before it was first sent"),
        phase="shape",
        step="ingest:shape_new_results",
        can_restore=True,
    ),
    RegisteredKind(
        "compaction",
        label=gettext_noop("compaction"),
        words=gettext_noop("shortened old tool results"),
        phase="reduce",
        step="compaction:compact_results",
        can_restore=True,
        instead=gettext_noop("What it took can be sent in full again."),
    ),
    RegisteredKind(
        "rounds",
        label=gettext_noop("rounds"),
        words=gettext_noop("summarised finished tool rounds"),
        phase="reduce",
        step="rounds:summarise_rounds",
        asks_model=True,
        block=gettext_noop("Working memory"),
        can_restore=True,
        fate="summary",
    ),
    RegisteredKind(
        "summary",
        label=gettext_noop("summary"),
        words=gettext_noop("replaced messages by a summary"),
        phase="reduce",
        step="summary:summarise_middle",
        asks_model=True,
        block=gettext_noop("Summary"),
        can_restore=True,
        growth="by_person",
        fate="summary",
        instead=gettext_noop(
            "Its words can be edited, and what it took can be sent in full again."
        ),
    ),
    RegisteredKind(
        "trim",
        label=gettext_noop("trim"),
        words=gettext_noop("dropped whole exchanges"),
        phase="limit",
        step="trim:drop_exchanges",
        harsher="trim:drop_rounds",
        block=gettext_noop("Notice"),
        can_restore=True,
        instead=gettext_noop("What it took can be sent in full again."),
    ),
    RegisteredKind(
        "shrink",
        label=gettext_noop("shrink"),
        words=gettext_noop("shortened the largest parts"),
        phase="limit",
        step="shrink:shrink_blocks",
        can_restore=True,
    ),
    RegisteredKind(
        "rebind",
        label=gettext_noop("rebind"),
        words=gettext_noop("dropped thinking that another request signed"),
        phase="send",
        step="rebind:drop_unbound_thinking",
        fate="thinking",
    ),
    # Without it no request could be sent, so it cannot be vetoed.
    RegisteredKind(
        "repair",
        label=gettext_noop("repair"),
        words=gettext_noop("left out or mended what the API would have refused"),
        phase="send",
        step="repair:repair_view",
        growth="always",
        may_veto=False,
    ),
    RegisteredKind(
        "restore",
        label=gettext_noop("restore"),
        words=gettext_noop("brought an original back"),
        phase="person",
        step="restore:build_restore",
        growth="always",
        instead=gettext_noop("Unpin what may be reduced again."),
    ),
    # It has no edits: it records what the API will clear from each request.
    RegisteredKind(
        "clearing",
        label=gettext_noop("clearing by the API"),
        words=gettext_noop("the API cleared old tool results"),
        phase="send",
        step="api_clearing:build_expectation",
    ),
)


def check_rows(rows: Sequence[RegisteredKind]) -> None:
    """Raise ValueError unless each kind has exactly one complete row."""
    names, wanted = [row.name for row in rows], get_args(TransformationKind)
    if sorted(names) != sorted(wanted):
        different = set(names) ^ set(wanted) or {name for name in names if names.count(name) > 1}
        raise ValueError(f"each kind needs exactly one row: {', '.join(sorted(different))}")
    for row in rows:
        if not (row.label and row.words and row.step):
            raise ValueError(f"{row.name}: a row needs a label, words and a step")
        if row.phase == "limit" and row.asks_model:
            raise ValueError(f"{row.name}: a step of the phase limit cannot ask the model")


def load_step(name: str) -> Callable[..., Any]:
    """Return the function named `module:function`; raises ImportError or AttributeError."""
    step: Callable[..., Any] = resolve_name(f"{__package__}.{name}")
    return step


check_rows(ROWS)
KINDS: dict[str, RegisteredKind] = {row.name: row for row in ROWS}
#: Name and label of each, as choices of a model's field.
CHOICES = tuple((row.name, row.label) for row in ROWS)
#: Kinds with a block of the engine's own in the first message.
OURS = tuple(row.name for row in ROWS if row.block)
ASKS_MODEL = tuple(row.name for row in ROWS if row.asks_model)
RESTORABLE = tuple(row.name for row in ROWS if row.can_restore)
GROWING = tuple(row.name for row in ROWS if row.growth == "always")
GROWING_BY_PERSON = tuple(row.name for row in ROWS if row.growth == "by_person")
