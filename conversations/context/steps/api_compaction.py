"""Let the API compact the beginning of the conversation into one signed block.

The request is that of a reply, so its prefix is read from the prompt cache, and the block's text is
readable. The block must come first, and it replaces exactly the messages that were sent for it: so
those are the first ones of the view, up to a cut. Pinned and verbatim results among them are sent
as well and stay in view behind the block. A later compaction includes the earlier block; there are
never two. The text is the API's: it is checked by the stop reason and by its length, and the recall
list follows it. Thinking behind it would stay valid, but is dropped as behind any other edit.

Only the model that made a block can read it. Before a request to another model, or once its
signature was refused, `replace_block_by_text` replaces it by its text.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from conversations.context.policy.gauge import Gauge
from conversations.context.policy.policy import Policy
from conversations.context.steps import api_clearing, recall_list
from conversations.context.steps.kinds import OURS
from conversations.context.steps.protocol import (
    REFUSED,
    CompactionReply,
    CompactionWanted,
    Situation,
)
from conversations.context.steps.removable_units import build_drops, find_latest_unit, find_pinned
from conversations.context.steps.removed_lists import write_lists
from conversations.context.steps.summary import END, START
from conversations.context.steps.summary_checks import ENDED
from conversations.context.steps.summary_stages import FAILED
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import rules, wire
from conversations.context.view.edits import (
    Edit,
    SpliceBlocks,
    SpliceMessages,
    Transformation,
    Trigger,
    build_transformation,
    build_unapplied,
)
from conversations.context.view.view import Block, Kind, Message, View

_NOTE = mark_recorded(
    gettext_noop(
        "The API compacted %(count)s messages into about %(number)s tokens, freed about %(most)s"
    )
)

#: The number of the block's message, which is not in the log.
NUMBER = 0
_SETTING = "compaction_threshold_tokens"
#: Percent of the threshold to which a compaction should bring the figure.
_LOW = 50
_FAILED = mark_recorded(gettext_noop("The API gave no compaction: %(why)s"))
_NOT_SHORTER = mark_recorded(gettext_noop("it is not shorter than what it replaces"))
_REPLACED = mark_recorded(
    gettext_noop(
        "Put the words of the API's compaction in its place: this model does not take its block"
    )
)
_EMPTY = mark_recorded(gettext_noop("its block is empty or not signed"))

Compacting = Generator[CompactionWanted, CompactionReply | None, Transformation | None]


def find_trigger(gauge: Gauge, policy: Policy) -> Trigger | None:
    """Return the trigger when the uncleared view has passed its threshold."""
    if not policy.compaction_enabled:
        return None
    return gauge.passes_or_room(policy.compaction_threshold_tokens, _SETTING)


def find_end(view: View, gauge: Gauge, policy: Policy, overhead: int) -> int:
    """Find how many messages to compact; 0 if none can be or if it is not worth a call.

    Whole exchanges are compacted, unless a single long turn fills the context.
    """
    messages, positions = view.messages, rules.find_cuts(view)
    stay = find_pinned(view, positions, policy)
    if any(messages[at].shape.compactions for at in stay):
        return 0
    sums, frees = [0], [0]
    for at, message in enumerate(messages):
        is_gone = at not in stay and message.shape.first != "compaction"
        sums.append(sums[-1] + message.tokens)
        frees.append(frees[-1] + (message.tokens if is_gone else 0))
    last = min(
        len(messages) - policy.protected_tail_messages, find_latest_unit(view, positions).start
    )
    least = policy.minimum_gain_tokens * 1000 // gauge.permille
    most = gauge.room * 1000 // gauge.permille - overhead
    changes_role = _list_role_changes(messages, stay)
    found = [
        at
        for at in positions
        if at <= last and sums[at] <= most and frees[at] >= least and changes_role[at]
    ]
    whole = max((at for at in found if messages[at].kind == "prompt"), default=0)
    left = gauge.tokens - frees[whole] * gauge.permille // 1000
    is_enough = left * 100 <= policy.compaction_threshold_tokens * _LOW
    return whole if is_enough else max(found, default=0)


def _list_role_changes(messages: tuple[Message, ...], stay: set[int]) -> list[bool]:
    """Return for each position whether the roles before it and of the first that stays differ.

    Messages without blocks are not sent and do not count.
    """
    before, after = [""], [""]
    for message in messages:
        before.append(before[-1] if message.is_empty else message.role)
    for message in reversed(messages):
        after.append(after[-1] if message.is_empty else message.role)
    after.reverse()
    pinned = min((at for at in stay if not messages[at].is_empty), default=len(messages))
    firsts = [messages[pinned].role if pinned < at else role for at, role in enumerate(after)]
    pairs = zip(before, firsts, strict=True)
    return [bool(last and first) and last != first for last, first in pairs]


def compact_prefix(
    view: View, end: int, trigger: Trigger, gauge: Gauge, policy: Policy
) -> Compacting:
    """Request a compaction of the first `end` messages, and put its block in their place."""
    prefix = view.head(end)
    rules.check_head(prefix)
    behind = view.tokens - prefix.tokens
    tokens = max(0, gauge.tokens - behind * gauge.permille // 1000)
    reply = yield CompactionWanted(prefix, tokens)
    flaw = _find_flaw(reply)
    if flaw or reply is None:
        return build_unapplied(view, "summary", trigger, "rejected", _FAILED % {"why": flaw})
    change = _build_change(view, end, trigger, reply.block, policy)
    if change.tokens_after >= view.tokens or change.bytes_after >= view.size:
        flaw = _NOT_SHORTER
        return build_unapplied(view, "summary", trigger, "rejected", _FAILED % {"why": flaw})
    return change


def _find_flaw(reply: CompactionReply | None) -> str:
    if not isinstance(reply, CompactionReply):
        return FAILED
    if reply.stop_reason != "compaction":
        return ENDED % {"reason": reply.stop_reason or "no stop reason"}
    value = Block(reply.block).value if reply.block else {}
    if not (str(value.get("content") or "").strip() and value.get("signature")):
        return _EMPTY
    return ""


def _build_change(
    view: View, end: int, trigger: Trigger, block: str, policy: Policy
) -> Transformation:
    stay = find_pinned(view, rules.find_cuts(view), policy)
    gone = [at for at in range(end) if at not in stay and view.messages[at].seq != NUMBER]
    messages = tuple(view.messages[at] for at in gone)
    edits: list[Edit] = [SpliceMessages(NUMBER, NUMBER, ((NUMBER, "answer", wire.join([block])),))]
    listed = _write_list(view, messages, policy)
    if listed:
        edits.append(SpliceBlocks(NUMBER, 1, 0, (listed,)))
    count = sum(not message.is_empty for message in messages)
    freed = sum(message.tokens for message in messages) - Block(block).tokens
    note = _NOTE % {
        "count": f"{count:,}", "number": f"{Block(block).tokens:,}", "most": f"{freed:,}"
    }  # fmt: skip
    return build_transformation(view, "summary", trigger, [*edits, *build_drops(view, gone)], note)


def _write_list(view: View, messages: tuple[Message, ...], policy: Policy) -> str:
    """Write the recall list of these messages and of those removed earlier."""
    first = view.messages[0]
    ours = [block for block in first.blocks if block.by in OURS and block.by != "rounds"]
    room = min(policy.lists_chars, sum(message.tokens for message in messages))
    text = write_lists(view, messages, ours, policy, room)
    return wire.encode({"type": "text", "text": text}) if text else ""


def inserts_block(edits: Iterable[Edit]) -> bool:
    """Return whether the edits insert a compaction block."""
    return any(
        isinstance(edit, SpliceMessages)
        and (NUMBER, "answer") in [put[:2] for put in edit.messages]
        for edit in edits
    )


def replace_block_by_text(view: View, situation: Situation) -> Transformation | None:
    """Replace the compaction block by its text if this model would not accept it."""
    if not api_clearing.has_compaction_block(view):
        return None
    is_same = situation.compacted_by in ("", situation.model)
    if situation.compacts and is_same and situation.bound_to != REFUSED:
        return None
    first = view.messages[0]
    blocks = first.blocks
    if not blocks or blocks[0].type != "compaction":
        return None
    explanation = str(blocks[0].value.get("content") or "").strip()
    kept = [block.text for block in blocks[1:] if block.by not in OURS]
    lists = [str(block.value["text"]) for block in blocks[1:] if block.by in OURS]
    words = "\n".join([recall_list.neutralise_markers(explanation) or "(nothing)", *lists])
    change = _build_text_change(view, kept, f"{START}\n{words}\n{END}")
    # A block can be shorter than its text with our markers; without them the view does not grow.
    return (
        change
        if change.bytes_after < change.bytes_before
        else _build_text_change(view, kept, words)
    )


def _build_text_change(view: View, kept: list[str], text: str) -> Transformation:
    """Build the change that replaces the first message's blocks by a text and the kept blocks."""
    first = view.messages[0]
    messages: list[tuple[int, Kind, str]] = [(NUMBER, "prompt", "[]")]
    if kept:
        messages.append((first.seq, first.kind, wire.join(kept)))
    return build_transformation(
        view,
        "summary",
        Trigger(1, 0, "counted"),
        [
            SpliceMessages(NUMBER, first.seq, tuple(messages)),
            SpliceBlocks(NUMBER, 0, 0, (wire.encode({"type": "text", "text": text}),)),
        ],
        _REPLACED,
    )
