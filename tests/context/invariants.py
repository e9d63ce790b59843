"""What must hold at every step of a story.

Nothing here relies on the engine: requests are checked by `independent`, signatures by
`signatures`, and the content of a view by the originals in the log.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conversations.context.pipeline import Prepared, Situation
from conversations.context.policy.gauge import Report
from conversations.context.policy.policy import Policy
from conversations.context.steps import open_calls
from conversations.context.steps.summary_zone import OURS
from conversations.context.view.edits import SpliceBlocks, Transformation
from conversations.context.view.view import THINKING, Block, Message, View
from tests.context.independent import found_in
from tests.context.samples import Shell

if TYPE_CHECKING:
    from tests.context.endpoints import Endpoint
    from tests.context.story import Story

_NAMED = re.compile(r'\bmsg_(\d+)"|\brecall \\?"((?:srv)?toolu_\d+)\\?"')
_NEXT = {"role": "user", "content": [{"type": "text", "text": "?"}]}
#: The number of the message that holds what the API compacted: it is none of the log.
_COMPACTED = 0


class InvariantChecker:
    """Watches one story."""

    def __init__(self, story: Story) -> None:
        self.story = story

    def read(self, view: View) -> list[dict[str, Any]]:
        """Read the body as the API does."""
        messages: list[dict[str, Any]] = json.loads(view.body)
        return messages

    def see_record(self, record: Transformation) -> None:
        """Nothing grows, and nothing is done without a reason that is a number."""
        if record.outcome == "expected":
            assert (record.edits, record.bytes_after) == ((), record.bytes_before)
            return
        if record.outcome != "applied":
            assert (record.edits, record.reason != "") == ((), True)
            assert record.bytes_after == record.bytes_before
            return
        assert record.bytes_after < record.bytes_before
        assert record.tokens_after <= record.tokens_before
        assert record.trigger.number > record.trigger.threshold
        assert record.note

    def see_request(self, prepared: Prepared, endpoint: Endpoint) -> None:
        """The API takes what is sent: its rules, and every signature in it."""
        messages = self.read(prepared.view)
        assert found_in(messages) == []
        broken = self.story.seals.broken(messages, endpoint.binding)
        assert broken == [], broken
        for block in messages[0]["content"]:
            if block["type"] == "compaction" and "signature" in block:
                assert self.story.makers[block["signature"]] == endpoint.model

    def see_compaction(self, view: View, endpoint: Endpoint) -> None:
        """What the API is asked to compact is a request it takes, but for how it ends."""
        messages = self.read(view)
        assert found_in([*messages, _NEXT]) == []
        broken = self.story.seals.broken(messages, endpoint.binding)
        assert broken == [], broken

    def see_changes(
        self,
        before: View,
        prepared: Prepared,
        shell: Shell,
        policy: Policy,
        known: Situation,
        harder: int,
    ) -> None:
        """What was prepared is what is recorded, final, and fair to what must stay."""
        view = prepared.view
        replayed = self.story.load().view
        assert replayed == view
        assert replayed.body == view.body
        if not shell.applied:
            assert view.body == before.body
        assert prepared.gauge.seen <= policy.room(known.window)
        if policy.name == "off":
            reduced = [record for record in shell.applied if record.note != open_calls.NOTE]
            assert {record.kind for record in reduced} <= {"rebind", "summary"}
        if not any(record.outcome == "vetoed" for record in shell.records):
            self._see_end(prepared, known, policy, shell)
        closed = open_calls.leave_out_open_calls(before)
        before = before if closed is None else closed.view_after
        self._see_what_stays(before, view, policy.pins | known.pins)
        self._see_compactions(before, shell, harder)
        self.see_originals(view)

    def _see_end(self, done: Prepared, known: Situation, policy: Policy, shell: Shell) -> None:
        """A second look at once, with what is known now, finds nothing to do."""
        view, gauge = done.view, done.gauge
        bound = known.binding if known.bound_to else ""
        again = Shell(counts=shell.counts)
        maker = self.story.maker_of(view)
        settled = replace(known, bound_to=bound, rejected=99, compacted_by=maker)
        if shell.counted:
            report = Report(gauge.tokens, view.tokens, known.overhead, view.edits)
            settled = replace(settled, report=report)
        again.prepare(view, settled, policy)
        assert again.applied == []

    def _see_what_stays(self, before: View, after: View, pins: frozenset[str | int]) -> None:
        """The first request, the latest one, the latest results, and what is pinned."""
        assert _pinned(before, pins) == _pinned(after, pins)
        # Behind what the API compacted a first message that is pinned keeps what it carries.
        first = after.messages[0].seq == _COMPACTED
        later = after.messages[1 + first :]
        assert not any(set(message.by) & {"summary", "trim"} for message in later)
        assert all(message.by.count(kind) <= 1 for message in after.messages for kind in OURS)
        latest: dict[str, set[int]] = {"results": set()}
        for message in before.messages:
            if message.kind == "results":
                latest["results"].add(message.seq)
            else:
                latest |= {message.kind: {message.seq}, "results": set()}
        seqs = {message.seq for message in after.messages}
        if after.messages[0].seq == _COMPACTED:
            # The words of the first request, and of the latest in a long turn, are in its block.
            latest["prompt"] = set()
            blocks = {m.seq for m in before.messages if m.shape.compactions}
            latest["answer"] = latest.get("answer", set()) - blocks
            assert set().union(*latest.values()) <= seqs
            return
        assert before.messages[0].seq == after.messages[0].seq
        assert set().union(*latest.values()) <= seqs

    def _see_compactions(self, before: View, shell: Shell, harder: int) -> None:
        """The latest batch is compacted only as a last resort, and an error never."""
        batch = [message.seq for message in before.messages if message.shape.results][-1:]
        for record in shell.applied:
            touched = {edit.seq for edit in record.edits if isinstance(edit, SpliceBlocks)}
            if record.kind == "compaction" and harder < 2:
                assert not touched & set(batch)

    def see_originals(self, view: View) -> None:
        """What the engine did not write is, byte for byte and in order, what the log has."""
        path = {entry.seq: entry for _, entry in self.story.path() if isinstance(entry, Message)}
        seqs = [message.seq for message in view.messages]
        assert seqs == sorted(set(seqs))
        for message in view.messages:
            if message.seq == _COMPACTED:
                continue
            original = path[message.seq]
            if message is original:
                continue
            assert message.kind == original.kind
            assert (
                message.tokens == Message.parse(message.seq, message.kind, message.content).tokens
            )
            _see_blocks(message, original)
            for block in message.blocks:
                if block.by not in ("", "restore"):
                    self._see_names(block, message, path)

    def _see_names(self, block: Block, message: Message, path: dict[int, Message]) -> None:
        """What the engine says can be recalled is an original of this very path."""
        calls = {result.id for one in path.values() for result in one.shape.results}
        for number, call in _NAMED.findall(block.text):
            assert call in calls or int(number or 0) in path
            # A block that was shortened names itself and nothing else.
            assert block.by in OURS or call == block.id or number == str(message.seq)


def _pinned(view: View, pins: frozenset[str | int]) -> list[str]:
    """Give what is pinned, but for what the engine adds and what the API must not be sent."""
    return [
        block.text
        for message in view.messages
        for block in message.blocks
        if (message.seq in pins or block.id in pins)
        and block.by not in OURS
        and block.type not in (*THINKING, "compaction")
    ]


def _see_blocks(message: Message, original: Message) -> None:
    """Blocks are the original's in their order, some rewritten in place; ours are put in."""
    old = [block.value for block in original.blocks]
    texts = [block.text for block in original.blocks]
    at = 0
    for block in message.blocks:
        if block.by in OURS:
            continue
        if block.by in ("", "restore"):
            at = texts.index(block.text, at) + 1
            continue
        while not _is_rewritten(old[at], block.value):
            at += 1
        if block.by == "compaction":
            assert old[at].get("is_error") is not True
        assert len(block.text) < len(texts[at])
        at += 1


def _is_rewritten(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Say whether a block is another one with less in it: all else must be the same."""
    body = {"tool_result": "content", "tool_use": "input", "text": "text"}.get(new["type"])
    if body is None or old["type"] != new["type"]:
        return False
    return _without(old, body) == _without(new, body)


def _without(block: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != field}
