"""Repair a view that breaks a rule of the API, whatever broke it, so that it can be sent.

A request that breaks a rule is refused, and so would be every later one of the conversation. The
smallest change that helps is made: a call without a result gets one, malformed blocks and results
without a call are left out, and if nothing smaller helps, the exchange is. The repair is recorded
like any other transformation, and a legal view is never touched. The log keeps the originals for
people.

Only `view/rules.py` decides which rules hold: a rule that is added there is obeyed here, at worst
by leaving out an exchange.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from conversations.context.errors import ContextError, RuleError
from conversations.context.policy.policy import Policy
from conversations.context.steps.removed_lists import write_left_out
from conversations.context.steps.repair_blocks import (
    BY,
    NO_MESSAGE,
    mend_blocks,
    strip_marks,
    write_text,
)
from conversations.context.steps.repair_drafts import Draft, Drafts, find_row
from conversations.context.steps.repair_pairs import (
    PairMending,
    is_served,
    leave_out_unpaired,
)
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view import edits, rules
from conversations.context.view.edits import Transformation, Trigger
from conversations.context.view.view import Block, View

#: Most attempts at changes smaller than an exchange, and most exchanges left out one by one.
MOST_ATTEMPTS, MOST_EXCHANGES = 6, 20
#: The note to people by what was done; the first key that applies is used.
NOTES = {
    "several": mark_recorded(
        gettext_noop(
            "Parts of this chat could not be sent to the model again and were left out."
            " You can still read them here."
        )
    ),
    "exchange": mark_recorded(
        gettext_noop(
            "An earlier message and its answer could not be sent to the model again and were left"
            " out. You can still read them here."
        )
    ),
    "prompt": mark_recorded(
        gettext_noop(
            "Part of a message could not be sent to the model and was left out."
            " You can still read it here."
        )
    ),
    "answer": mark_recorded(
        gettext_noop(
            "Part of an earlier answer could not be sent to the model again and was left out."
            " You can still read it here."
        )
    ),
    "results": mark_recorded(
        gettext_noop(
            "Something that a tool returned could not be sent to the model and was left out."
            " You can still read it here."
        )
    ),
    "lost": mark_recorded(
        gettext_noop("What a tool returned is missing. The model is told so, and the chat goes on.")
    ),
    "order": mark_recorded(
        gettext_noop(
            "Something earlier in this chat was put in order for the model. Nothing was left out."
        )
    ),
}
_PLACE = re.compile(r"messages\.(\d+)(?:\.content\.(\d+))?")


@dataclass(slots=True)
class Repair:
    """A repair in progress: the drafts, and what was done to them."""

    drafts: Drafts
    done: set[str] = field(default_factory=set)

    def build(self, reason: str) -> Transformation:
        """Build the record of the repair so far; `reason` is the text of the broken rule."""
        found = self.drafts.list_edits()
        trigger = Trigger(max(1, len(found)), 0, "counted")
        change = edits.build_transformation(
            self.drafts.view, BY, trigger, found, write_note(self.done)
        )
        return replace(change, reason=reason)

    def mend(self) -> None:
        """Make each message valid by itself, then pair calls and results."""
        for draft in self.drafts.rows:
            if mend_blocks(draft):
                self.done.add(draft.kind)
        last = self.drafts.rows[-1:]
        for some in self.drafts.list_exchanges():
            self.done |= leave_out_unpaired(some, may_wait=some[-1:] == last)
        pairs = PairMending(self.drafts)
        pairs.mend()
        if pairs.has_lost:
            self.done.add("lost")
        if pairs.has_dropped:
            self.done.add("results")
        if pairs.has_moved:
            self.done.add("order")

    def obey(self, error: ContextError) -> None:
        """Make the smallest change for one rule that is still broken."""
        rule = error.rule if isinstance(error, RuleError) else ""
        match rule:
            case "first":
                first = self.drafts.list_sent()[0]
                self.drafts.insert(Draft(max(0, first.seq - 1), "prompt", [write_text(NO_MESSAGE)]))
                self.done.add("prompt")
            case "end" | "empty":
                last = max((draft.seq for draft in self.drafts.rows), default=0)
                self.drafts.insert(Draft(last + 1, "prompt", [write_text(NO_MESSAGE)]))
                self.done.add("prompt")
            case "server_tool" | "unique":
                self._leave_out_served()
            case "compaction":
                self._leave_out(lambda block: block.type == "compaction")
            case "cache_control":
                self._strip_marks()
            case _:
                self._leave_out_named(error)
        self.mend()

    def leave_out_exchange(self, error: ContextError) -> None:
        """Leave out the exchange that the error names; of the last one, all but its prompt."""
        at = find_named(self.drafts, str(error))[0]
        # For a call without an answer, the error names the message after it.
        place = len(self.drafts.rows) - 1 if at is None else at
        if at and self.drafts.rows[at].is_prompt and self.drafts.find_last_prompt() == at:
            place = at - 1
        self._drop(self.drafts.list_exchange(max(0, place)))
        self.mend()

    def keep_last_prompt(self) -> None:
        """Leave out everything but the texts of the last prompt."""
        at = self.drafts.find_last_prompt()
        last = max((draft.seq for draft in self.drafts.rows), default=0)
        prompt = self.drafts.rows[at] if at >= 0 else Draft(last + 1, "prompt", [])
        texts = [str(block.value["text"]) for block in prompt.blocks if block.type == "text"]
        prompt.blocks = [write_text(text) for text in texts] or [write_text(NO_MESSAGE)]
        self.drafts.rows = [prompt]
        self.done.add("several")

    def _drop(self, some: list[Draft]) -> None:
        at = self.drafts.find_last_prompt()
        last = self.drafts.rows[at].seq if at >= 0 else -1
        self.drafts.remove([draft for draft in some if draft.seq != last])
        self.done.add("exchange")

    def _leave_out_named(self, error: ContextError) -> None:
        at, block = find_named(self.drafts, str(error))
        if at is None:
            return
        draft = self.drafts.rows[at]
        if block is None or block >= len(draft.blocks):
            self._drop(self.drafts.list_exchange(at))
            return
        del draft.blocks[block]
        if not draft.blocks and draft.is_prompt:
            draft.blocks = [write_text(NO_MESSAGE)]
        self.done.add(draft.kind)

    def _leave_out_served(self) -> None:
        """Leave out calls of the API's own tools whose answer lacks the result, else all."""
        changed = False
        for some in self.drafts.list_runs():
            kinds = leave_out_unpaired(some, may_wait=False)
            changed, self.done = changed or bool(kinds), self.done | kinds
        if not changed:
            self._leave_out(is_served)

    def _leave_out(self, is_meant: Callable[[Block], bool]) -> None:
        for draft in self.drafts.rows:
            kept = [block for block in draft.blocks if not is_meant(block)]
            if len(kept) < len(draft.blocks):
                draft.blocks = kept
                self.done.add(draft.kind)

    def _strip_marks(self) -> None:
        for draft in self.drafts.rows:
            draft.blocks = [strip_marks(block) for block in draft.blocks]
        self.done.add("order")


def repair_view(view: View, policy: Policy) -> Transformation | None:
    """Build the change after which the view can be sent; None if it can be sent as it is.

    The record of what was done in messages that it leaves out stays in view.
    """
    broken = find_broken_rule(view)
    if broken is None:
        return None
    repair = Repair(Drafts(view))
    return _add_record(repair, _repair(repair, str(broken)), policy)


def _repair(repair: Repair, reason: str) -> Transformation:
    repair.mend()
    change = repair.build(reason)
    for attempt in range(MOST_ATTEMPTS + MOST_EXCHANGES):
        left = find_broken_rule(change.view_after)
        if left is None:
            return change
        repair.drafts.follow(change.view_after)
        if attempt < MOST_ATTEMPTS:
            repair.obey(left)
        else:
            repair.leave_out_exchange(left)
        change = repair.build(reason)
    repair.keep_last_prompt()
    return repair.build(reason)


def _add_record(repair: Repair, change: Transformation, policy: Policy) -> Transformation:
    """Return the repair with the record of the messages that it leaves out, if they can be read."""
    left = {message.seq for message in change.view_after.messages}
    messages = repair.drafts.view.messages
    gone = [one for one in messages if one.seq not in left and one.shape.flaw is None]
    record = write_left_out(repair.drafts.view, gone, policy)
    if not record:
        return change
    repair.drafts.follow(change.view_after)
    repair.drafts.insert(Draft(gone[0].seq, "prompt", [Block(record, BY)]))
    found = repair.build(change.reason)
    return change if find_broken_rule(found.view_after) else found


def find_broken_rule(view: View) -> ContextError | None:
    """Return the first rule of the API that the view breaks."""
    try:
        rules.check_rules(view)
    except ContextError as error:
        return error
    return None


def find_named(drafts: Drafts, words: str) -> tuple[int | None, int | None]:
    """Return the indexes of the draft and the block that `words` name as messages.N.content.M."""
    place = _PLACE.search(words)
    sent = drafts.list_sent()
    if place is None or int(place[1]) >= len(sent):
        return None, None
    at = find_row(drafts.rows, sent[int(place[1])].seq)
    return at, int(place[2]) if place[2] else None


def write_note(done: set[str]) -> str:
    """Write what was done in plain words."""
    parts = done & {"prompt", "answer", "results", "exchange"}
    if len(parts) > 1 or "several" in done:
        return NOTES["several"]
    return next((words for name, words in NOTES.items() if name in done), NOTES["order"])
