"""Pair tool calls with their results, in the order that the API demands.

The API merges neighbouring messages of one role into a turn: every call of an assistant's turn has
one result at the beginning of the user's turn that follows. A call without a result gets one that
says so, a result without a call is left out, and a repeated id is renamed together with its result.
Results of the API's own tools follow their calls somewhere in the same exchange; no replacement
result can be written for such a call, so calls and results without a counterpart are left out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise

from conversations.context.steps.repair_blocks import LOST_RESULT, with_id, write_result
from conversations.context.steps.repair_drafts import Draft, Drafts
from conversations.context.view import blocks as wire_blocks
from conversations.context.view.call_ids import find_free_id
from conversations.context.view.view import Block

#: The ids that results of an answer have, each with the new ids of its calls in their order.
Expected = dict[str, deque[str]]


class PairMending:
    """One pass over the drafts; the flags say what was changed."""

    def __init__(self, drafts: Drafts) -> None:
        self.drafts = drafts
        self.ids: set[str] = set()
        self.has_dropped = self.has_lost = self.has_moved = False

    def mend(self) -> None:
        """Pair the calls and results of all turns."""
        self._fill_gaps()
        expected: Expected = {}
        last: Draft | None = None
        for run in self.drafts.list_runs():
            if run[0].role == "assistant":
                expected, last = self._rename_calls(run), run[-1]
            else:
                self._order_results(run, expected, last)
                expected = {}
        if last is not None and any(expected.values()):
            self._add_lost(None, expected, last)

    def _fill_gaps(self) -> None:
        """Write results for calls between two answers whose results are missing."""
        sent = self.drafts.list_sent()
        answered = {
            block.id for draft in sent for block in draft.blocks if block.type == "tool_result"
        }
        for draft, behind in pairwise(sent):
            calls = [block.id for block in draft.blocks if block.type == "tool_use"]
            is_lost = calls and draft.kind == behind.kind == "answer"
            if is_lost and answered.isdisjoint(calls) and draft.seq + 1 < behind.seq:
                self.has_lost = True
                self._put_behind(draft, [write_result(call, LOST_RESULT) for call in calls])

    def _put_behind(self, last: Draft, lost: list[Block]) -> None:
        """Put results at the number after an answer, which no sent message has."""
        draft = next((one for one in self.drafts.rows if one.seq == last.seq + 1), None)
        if draft is None:
            self.drafts.insert(Draft(last.seq + 1, "results", lost))
        else:
            draft.kind, draft.blocks = "results", lost

    def _rename_calls(self, run: list[Draft]) -> Expected:
        expected: Expected = defaultdict(deque)
        for draft in run:
            for at, block in enumerate(draft.blocks):
                if block.type == "tool_use":
                    call = find_free_id(block.id, self.ids)
                    self.ids.add(call)
                    expected[block.id].append(call)
                    if call != block.id:
                        self.has_moved = True
                        draft.blocks[at] = with_id(block, call)
        return expected

    def _order_results(self, run: list[Draft], expected: Expected, last: Draft | None) -> None:
        """Put the results of a user's turn first, without those that answer no call."""
        late: list[Block] = []
        is_past = False
        for draft in run:
            results, others = self._split(draft.blocks, expected)
            blocks = [*results, *others]
            if is_past and results:
                # An earlier message of this turn has other blocks: results must go before those.
                late += results
                blocks = others
            if [block.text for block in blocks] != [block.text for block in draft.blocks]:
                self.has_moved = True
                draft.blocks = blocks
            is_past = is_past or bool(others)
        if late:
            self._put_first(run[0], late)
        if last is not None and any(expected.values()):
            self._add_lost(run[0], expected, last)

    def _split(self, blocks: list[Block], expected: Expected) -> tuple[list[Block], list[Block]]:
        """Return the results that answer a call, under its id, and the other blocks."""
        results: list[Block] = []
        others: list[Block] = []
        for block in blocks:
            if block.type != "tool_result":
                others.append(block)
            elif expected.get(block.id):
                call = expected[block.id].popleft()
                results.append(block if call == block.id else with_id(block, call))
            else:
                self.has_dropped = True
        return results, others

    def _add_lost(self, first: Draft | None, expected: Expected, last: Draft) -> None:
        """Write results for the calls without one, in a message of results if possible."""
        self.has_lost = True
        lost = [write_result(call, LOST_RESULT) for calls in expected.values() for call in calls]
        if first is not None and (first.kind == "results" or last.seq + 1 >= first.seq):
            self._put_first(first, lost)
            return
        self._put_behind(last, lost)

    def _put_first(self, draft: Draft, results: list[Block]) -> None:
        """Insert results after those at the beginning of a message."""
        self.has_moved = True
        count = sum(block.type == "tool_result" for block in draft.blocks)
        draft.blocks = [*draft.blocks[:count], *results, *draft.blocks[count:]]


def leave_out_unpaired(some: list[Draft], *, may_wait: bool) -> set[str]:
    """Leave out calls and results of the API's own tools that have no counterpart in order.

    With `may_wait` a call may lack its result. Returns the kinds of the messages that changed.
    """
    served = [_read_served(block) for draft in some for block in draft.blocks]
    answered = {call for is_result, call in served if is_result}
    called: set[str] = set()
    closed: set[str] = set()
    changed: set[str] = set()
    for draft in some:
        kept: list[Block] = []
        for block in draft.blocks:
            is_result, call = _read_served(block)
            if call and is_result:
                if call not in called or call in closed:
                    continue
                closed.add(call)
            elif call:
                if call in called or not (may_wait or call in answered):
                    continue
                called.add(call)
            kept.append(block)
        if len(kept) < len(draft.blocks):
            draft.blocks = kept
            changed.add(draft.kind)
    return changed


def is_served(block: Block) -> bool:
    """Return whether a block is a call or a result of the API's own tools."""
    return bool(_read_served(block)[1])


def _read_served(block: Block) -> tuple[bool, str]:
    """Return whether a block is a result of the API's own tools, and its id; "" for any other."""
    if wire_blocks.is_server_result(block.type):
        return True, str(block.value["tool_use_id"])
    return False, block.id if block.type in wire_blocks.SERVER_CALLS else ""
