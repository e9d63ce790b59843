"""Verification: proves from the rows alone that the record is what was sent and paid.

It checks every chained row in link order, rebuilds every request and compares its digest, and
checks every text stored under a digest, every tool call and every budget window. An unreadable row
is reported as a problem, never as a traceback. What the database alone cannot show (the newest rows
deleted together with the end of their chain, or a whole chain rewritten), the anchors show
(audit/anchors.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from conversations.audit.anchor_checks import (
    AnchoredChains,
    check_missing_chains,
    read_anchored_chains,
)
from conversations.audit.anchor_file import SITE_NAME
from conversations.audit.chain_links import check_links
from conversations.audit.checkpoint_checks import check_checkpoint
from conversations.audit.closed_day_checks import check_closed_days
from conversations.audit.content_checks import (
    check_files,
    check_texts,
    check_tools,
    list_text_digests,
)
from conversations.audit.cost_checks import check_costs
from conversations.audit.money_checks import check_booked_differences, check_money_records
from conversations.audit.request_bodies import check_bodies
from conversations.budgets.kept_costs import check_kept_costs
from conversations.budgets.reconciliation import check_windows
from conversations.log.findings import DAMAGE, Problem, Tally, describe_error
from conversations.models import Blob, Conversation, Envelope, SiteChain

__all__ = ["Problem", "Tally", "verify_conversation", "verify_everything"]


def verify_everything(tally: Tally) -> Iterator[Problem]:
    """Verify all conversations, texts and windows, counting in `tally`; yield the problems."""
    kinds: tuple[type[Envelope | Blob], ...] = (Envelope, Blob)
    for kind in kinds:
        yield from _count_problems(tally, _verify_texts(kind))
    pins = read_anchored_chains()
    yield from _count_problems(tally, iter(pins.problems))
    keys = Conversation.objects.order_by("pk").values_list("pk", flat=True)
    for key in keys.iterator(chunk_size=1_000):
        yield from _count_problems(tally, _verify_conversation(key, tally, pins))
    yield from _count_problems(tally, check_missing_chains(pins))
    yield from _count_problems(tally, _verify_site(tally, pins))
    yield from _count_problems(tally, check_money_records())
    yield from _count_problems(tally, check_booked_differences())
    yield from _count_problems(tally, check_windows())
    yield from _count_problems(tally, check_closed_days())


def verify_conversation(public_id: UUID, tally: Tally) -> Iterator[Problem]:
    """Verify one conversation and its texts; raises Conversation.DoesNotExist."""
    key = Conversation.objects.values_list("pk", flat=True).get(public_id=public_id)
    envelopes, blobs = list_text_digests(key)
    yield from _count_problems(tally, check_texts(Envelope, envelopes))
    yield from _count_problems(tally, check_texts(Blob, blobs))
    pins = read_anchored_chains()
    yield from _count_problems(tally, iter(pins.problems))
    yield from _count_problems(tally, _verify_conversation(key, tally, pins))


def _verify_texts(kind: type[Blob | Envelope]) -> Iterator[Problem]:
    try:
        keys = list(kind._base_manager.order_by("pk").values_list("pk", flat=True))
    except DAMAGE as error:
        yield Problem(
            str(kind._meta.model_name), "", f"the table cannot be read: {describe_error(error)}"
        )
        return
    yield from check_texts(kind, keys)


def _verify_conversation(key: int, tally: Tally, pins: AnchoredChains) -> Iterator[Problem]:
    try:
        conversation = Conversation.objects.filter(pk=key).first()
        if conversation is None:  # erased meanwhile
            return
        tally.conversations += 1
        is_intact = True
        pinned = pins.of(str(conversation.public_id))
        for problem in (*check_links(conversation, pinned), *_check_head(conversation)):
            is_intact = False
            yield problem
        tally.broken_chains += not is_intact
        yield from check_bodies(conversation, tally)
        yield from check_checkpoint(conversation)
        yield from check_tools(conversation)
        yield from check_costs(conversation, tally)
        yield from check_kept_costs(conversation)
        yield from check_files(conversation)
    except DAMAGE as error:
        yield Problem("conversation", str(key), f"cannot be read: {describe_error(error)}")


def _verify_site(tally: Tally, pins: AnchoredChains) -> Iterator[Problem]:
    """Verify the chain of rows that belong to no conversation."""
    try:
        site = SiteChain.objects.filter(pk=1).first() or SiteChain(pk=1)
        problems = list(check_links(site, pins.of(SITE_NAME)))
    except DAMAGE as error:
        problems = [Problem("sitechain", "1", f"cannot be read: {describe_error(error)}")]
    tally.broken_chains += bool(problems)
    yield from problems


def _check_head(conversation: Conversation) -> Iterator[Problem]:
    """Compare the log's counter and tip with its entries."""
    numbers = {
        *conversation.messages.filter(seq__lte=conversation.head).values_list("seq", flat=True),
        *conversation.transformations.filter(seq__lte=conversation.head).values_list(
            "seq", flat=True
        ),
    }
    place, key = str(conversation.public_id), str(conversation.pk)
    if len(numbers) != conversation.head:
        what = f"changed: its head is {conversation.head} and the log has {len(numbers)} entries"
        yield Problem("conversation", key, what, place)
    if conversation.tip and conversation.tip not in numbers:
        what = f"changed: its tip {conversation.tip} is not in the log"
        yield Problem("conversation", key, what, place)
    elif conversation.leaf and not _is_of_turn(conversation):
        what = f"changed: its tip {conversation.tip} is not of its last turn {conversation.leaf}"
        yield Problem("conversation", key, what, place)


def _is_of_turn(conversation: Conversation) -> bool:
    """Return whether the tip is an entry of the conversation's last turn."""
    wanted = {"seq": conversation.tip, "turn__number": conversation.leaf}
    rows = (conversation.messages, conversation.transformations)
    return any(some.filter(**wanted).exists() for some in rows)


def _count_problems(tally: Tally, problems: Iterator[Problem]) -> Iterator[Problem]:
    for problem in problems:
        tally.problems += 1
        yield problem
