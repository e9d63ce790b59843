"""From a prompt to the bytes of its request, in a long conversation beside one of twelve entries.

The turn is sent, claimed and begun as the site begins it: settings, view, pins and job are read and
its request is joined. What the engine decides before is measured by `bench context`.

All but the last entries of the long one were removed from its view, as a summary would: what a turn
loads must follow from what it sends, and not from what was said before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from uuid import uuid4

from agentweb.bench.page_times import Page, import_long_conversation, make_reader, measure_page
from conversations.agent.ports import Finish
from conversations.conf import conf
from conversations.context.policy.policy import Policy
from conversations.context.view.edits import SpliceMessages, Trigger, build_transformation
from conversations.context.view.envelope import join_body
from conversations.log import leases
from conversations.log.append import record_transformation
from conversations.log.leases import Lease
from conversations.log.turn_state import load_state
from conversations.models import Conversation
from conversations.runtime.begin import claim_turn
from conversations.runtime.job import build_job
from conversations.turns import turns

#: Entries of the short conversation, and of the long one's view.
SHORT = 12


def measure_requests(entries: int, runs: int) -> list[Page]:
    """Measure a conversation of `entries` entries, with the short one as its floor."""
    user, _ = make_reader(f"reader {uuid4()}")
    short, long = (import_long_conversation(user, max(1, count // 2)) for count in (SHORT, entries))
    _remove_all_but_last(long)
    floor, page = (
        measure_page("prompt to request", partial(_write_request, one), runs)
        for one in (short, long)
    )
    return [replace(page, floor=floor.processor)]


def _send_prompt(conversation: Conversation) -> int:
    """Send a prompt; return the id of its turn."""
    fresh = Conversation.objects.get(pk=conversation.pk)
    return turns.send_prompt(conversation=fresh, text="And then?", client_id=uuid4()).pk


def _end_turn(lease: Lease) -> None:
    turns.finish_turn(lease=lease, finish=Finish("cancelled", "stopped"))


def _remove_all_but_last(conversation: Conversation) -> None:
    lease = leases.claim_turn(turn_id=_send_prompt(conversation), owner="bench")
    assert lease is not None  # noqa: S101 - nobody else claims it
    view = load_state(conversation, conf.model).view
    behind = view.messages[-SHORT].seq if view.length > SHORT else 0
    if behind:
        trigger = Trigger(view.tokens, view.tokens // 2, "estimated")
        edit = SpliceMessages(view.messages[0].seq, behind - 1)
        change = build_transformation(view, "trim", trigger, [edit], "the oldest")
        record_transformation(lease=lease, change=change, policy=Policy(), summary_call=None)
    _end_turn(lease)


def _write_request(conversation: Conversation) -> str:
    claimed = claim_turn(turn_id=_send_prompt(conversation), owner="bench")
    assert claimed is not None  # noqa: S101 - nobody else claims it
    begun = claimed.demand_begun()
    body = join_body(build_job(begun.facts).envelope.text, begun.state.view.body)
    _end_turn(claimed.lease)
    return body
