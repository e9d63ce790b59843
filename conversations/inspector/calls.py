"""The page of one call: figures, parameters, messages, verification."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.agent.usage import Usage, read_usage
from conversations.context.view import wire
from conversations.context.view.prefix import CommonPrefix, compare_prefix
from conversations.inspector.call_blocks import BlockPage, build_block_page, map_turns
from conversations.inspector.call_index import CallIndex, CallRow
from conversations.inspector.composition import Composition, build_composition, weigh_parts
from conversations.inspector.parameters import Parameters, parse_parameters
from conversations.inspector.sent_messages import (
    Proof,
    TracedCall,
    catch_damage,
    trace_call,
    verify_call,
)
from conversations.log.path import fold_path, read_path
from conversations.models import ApiCall, ApiModel, Conversation
from conversations.reductions.pins import list_pins
from conversations.reductions.policy_outline import PolicyOutline

#: The window assumed for a model that is no longer in the catalogue.
WINDOW = 200_000


@dataclass(frozen=True, slots=True)
class Prefix:
    """How much of the previous call's request the cache could return; None: other envelope."""

    kept: CommonPrefix | None
    blocks: int

    @property
    def is_whole(self) -> bool:
        """Return whether the previous request is unchanged at the beginning of this one."""
        return self.kept is not None and self.kept.blocks >= self.blocks


@dataclass(frozen=True, slots=True)
class CallPage:
    """A call; with damaged rows `problem` is set, and what needs these rows is None."""

    call: CallRow
    row: ApiCall
    before: CallRow | None
    previous: CallRow | None
    next: CallRow | None
    window: int
    parameters: Parameters | None
    projection: BlockPage | None
    composition: Composition | None
    proof: Proof | None
    prefix: Prefix | None
    usage: Usage | None
    cleared: int
    messages: int
    is_own: bool
    problem: str

    @property
    def error_percent(self) -> int | None:
        """The error of the estimate in percent of the reported size; negative when too low."""
        reported = self.call.tokens_in
        if not reported or not self.row.estimated_tokens:
            return None
        return round((self.row.estimated_tokens - reported) * 100 / reported)


def read_call(conversation: Conversation, found: CallIndex, n: int) -> ApiCall | None:
    """Return the row of the call with that number; None when there is none."""
    named = found.call(n)
    if named is None:
        return None
    rows = ApiCall.objects.select_related("envelope", "messages", "turn", "result")
    row = rows.filter(pk=named.id).first()
    if row is not None:
        # The same object, so that it is not queried again.
        row.conversation = conversation
    return row


def read_window(model: str) -> int:
    """Return the context window of a model, in tokens."""
    window = ApiModel.objects.filter(pk=model).values_list("window", flat=True).first()
    return window or WINDOW


def build_call_page(
    found: CallIndex, call: CallRow, row: ApiCall, ahead: PolicyOutline | None, *, start: int = 0
) -> CallPage:
    """Collect everything about a call; damage becomes `problem` instead of an exception."""
    made, problem = catch_damage(lambda: trace_call(row))
    params, flaw = catch_damage(lambda: parse_parameters(row.envelope))
    before = found.before(call)
    shown, window = None, read_window(row.model)
    if made is not None:
        shown, torn = catch_damage(lambda: _build_blocks(row, made, start))
        problem = problem or torn
    near = [one for one in found.calls if one.is_on_path or not call.is_on_path]
    return CallPage(
        call=call,
        row=row,
        before=before,
        previous=next((one for one in reversed(near) if one.n < call.n), None),
        next=next((one for one in near if one.n > call.n), None),
        window=window,
        parameters=params,
        projection=shown,
        composition=_build_composition(call, row, made, window, ahead) if shown and made else None,
        proof=verify_call(row, made.found) if shown and made else None,
        prefix=_compare_prefix(row, before, made) if shown and made else None,
        usage=_read_usage(row),
        cleared=len(made.found.view.cleared) if made else 0,
        messages=made.found.messages if made else 0,
        is_own=made.is_own if made else False,
        problem=problem or flaw,
    )


def _build_blocks(row: ApiCall, made: TracedCall, start: int) -> BlockPage:
    held = list_pins(row.conversation, row.sent_at)
    turns = {} if made.is_own else map_turns(row.conversation)
    return build_block_page(made.found, turns, held, start=start, is_own=made.is_own)


def _build_composition(
    call: CallRow, row: ApiCall, made: TracedCall, window: int, ahead: PolicyOutline | None
) -> Composition:
    return build_composition(
        weigh_parts(made.found.view, row.overhead_tokens),
        window,
        total=call.tokens_in,
        cached_percent=call.cached_percent,
        ahead=ahead,
    )


def _read_usage(row: ApiCall) -> Usage | None:
    result = getattr(row, "result", None)
    if result is None or result.input_tokens is None:
        return None
    usage, _ = catch_damage(lambda: read_usage(wire.decode(result.usage)))
    return usage


def _compare_prefix(row: ApiCall, before: CallRow | None, made: TracedCall) -> Prefix | None:
    """Compare with the previous call, whose path is the beginning of this one's."""
    if before is None or made.is_own:
        return None
    earlier = ApiCall.objects.filter(pk=before.id).values_list("binding", flat=True).first()
    view, _ = catch_damage(lambda: fold_path(read_path(row.conversation, before.tip)))
    if view is None:
        return None
    blocks = sum(len(message.blocks) for message in view.messages)
    same = compare_prefix(view, made.found.view) if earlier == row.binding else None
    return Prefix(same, blocks)
