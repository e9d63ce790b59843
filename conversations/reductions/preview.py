"""Previews of a manual reduction: figures, changed blocks, costs, and the digest to confirm.

No preview calls the model. The text of a summary cannot be known beforehand, so its price is shown
first; the text that the model then wrote is previewed like any other change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from conversations.agent.prices import PriceMissing
from conversations.agent.usage import Usage
from conversations.budgets.prices import load_price_list
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.steps import by_hand
from conversations.context.steps.protocol import SummaryWanted
from conversations.context.steps.summary_versions import read_summary
from conversations.context.steps.summary_zone import find_zone
from conversations.context.steps.working_view import WorkingView
from conversations.context.view import wire
from conversations.context.view.edits import Transformation
from conversations.models import IS_LIVE, ApiCall, Conversation, Proposal
from conversations.reductions.policy import effective_policy
from conversations.reductions.proposals import TOO_LITTLE, build_change
from conversations.reductions.record_change import ManualChangeError, refusing_damage
from conversations.reductions.reduction_page import list_changes
from conversations.reductions.shapes import Change
from conversations.reductions.word_diff import DiffBudget, Piece, compare_texts
from conversations.reductions.working_view import load_working_view
from conversations.rendering.numbers import dollars, write_number
from conversations.templatetags.recorded import translated

#: Changed blocks that a preview shows, and characters of each.
MOST, SHOWN = 40, 800
WANTED = ("results", "turns", "summary")
#: Approximate tokens of a summary; percent by which an estimate may be too low.
_WRITTEN, _MARGIN = 1_000, 25


@dataclass(frozen=True, slots=True)
class Preview:
    """One change that would be made; token counts are estimates of the whole context."""

    note: str
    tokens_before: int
    tokens_after: int
    bytes_before: int
    bytes_after: int
    source: str
    changes: tuple[Change, ...]
    more: int
    costs: tuple[tuple[str, str], ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Price:
    """What requesting a summary costs; money as text, "" where the model has no price."""

    model: str
    calls: int
    reads: int
    messages: int
    about: str
    most: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A requested summary: being written, refused with a reason, or waiting for a decision.

    `pieces` compares it with the summary in use, None where the two differ too much.
    """

    is_asking: bool
    reason: str
    text: str
    target: int
    model: str
    spent_micros: int
    preview: Preview | None
    pieces: tuple[Piece, ...] | None


@dataclass(frozen=True, slots=True)
class Offer:
    """One choice and its preview; `problem` is the reason why it is impossible."""

    wanted: str
    problem: str = ""
    preview: Preview | None = None
    price: Price | None = None
    proposed: Proposed | None = None


def build_offer(conversation: Conversation, wanted: str) -> Offer:
    """Return the preview of a choice for the present state of the conversation."""
    try:
        with refusing_damage():
            made = _build_offer(conversation, wanted)
    except ManualChangeError as error:
        made = Offer(wanted, error.text)
    except ContextError as error:
        return Offer(wanted, translated(str(error)))
    if conversation.turns.filter(IS_LIVE).exists():
        made = replace(made, problem=_("An answer is on its way. Wait until it is done."))
    return made


def _build_offer(conversation: Conversation, wanted: str) -> Offer:
    working = load_working_view(conversation, effective_policy(conversation))
    made = Offer(wanted)
    match wanted:
        case "results":
            return _offer_change(
                made,
                working,
                by_hand.compact_by_hand(working),
                _("No old tool result is left to shorten."),
            )
        case "turns":
            return _offer_change(
                made,
                working,
                by_hand.drop_turns_by_hand(working),
                _("There is no older turn to drop."),
            )
        case _:
            return _offer_summary(made, conversation, working)


def _offer_change(
    made: Offer, working: WorkingView, change: Transformation | None, nothing: str
) -> Offer:
    if change is None:
        return replace(made, problem=nothing)
    return replace(made, preview=build_preview(working, change))


def build_preview(working: WorkingView, change: Transformation) -> Preview:
    """Build the preview of a change that was not made yet."""
    shown = list_changes(working.view, change.edits)
    gauge = working.gauge
    saved = (change.tokens_before - change.tokens_after) * gauge.permille // 1000
    return Preview(
        note=change.note,
        tokens_before=gauge.tokens,
        tokens_after=max(0, gauge.tokens - saved),
        bytes_before=change.bytes_before,
        bytes_after=change.bytes_after,
        source=gauge.source,
        changes=tuple(_shorten(one) for one in shown[:MOST]),
        more=max(0, len(shown) - MOST),
        costs=_describe_costs(working, change),
        digest=wire.digest(change.view_after.body),
    )


def _shorten(change: Change) -> Change:
    before, after = change.before, change.after
    return replace(
        change,
        before=before[:SHOWN] + ("…" if len(before) > SHOWN else ""),
        after=after[:SHOWN] + ("…" if len(after) > SHOWN else ""),
    )


def _describe_costs(working: WorkingView, change: Transformation) -> tuple[tuple[str, str], ...]:
    """Return the effects of the change on the prompt cache and on the price of later calls."""
    found = change.decision
    if found is None:
        return ()
    again = by_hand.count_rewritten(working, change.view_after) * working.gauge.permille // 1000
    if working.situation.is_cold:
        cache = _("nothing: nothing of it is in the cache any more")
    else:
        cache = _("about %(n)s cached tokens are written anew") % {"n": write_number(again)}
        if found.saved_each:
            cache += _(", about %(cost)s once") % {"cost": dollars(found.cost)}
    saves = _("about %(n)s tokens a call") % {"n": write_number(found.saved_tokens)}
    if found.saved_each:
        saves += _(", about %(each)s") % {"each": dollars(found.saved_each)}
    costs = [(_("Prompt cache"), cache)]
    if found.saved_tokens:
        costs.append((_("Saves"), saves))
    if found.saved_tokens and found.saved_each and found.cost:
        calls = found.pays_back_calls
        back = ngettext("with the next call", "after about %(n)s calls", calls) % {
            "n": write_number(calls)
        }
        costs.append((_("Pays back"), back))
    return tuple(costs)


def _offer_summary(made: Offer, conversation: Conversation, working: WorkingView) -> Offer:
    known = Proposal.objects.filter(conversation=conversation).select_related("call").first()
    if known is not None:
        return replace(made, proposed=show_proposal(conversation, working, known))
    requests = by_hand.list_summary_requests(by_hand.summarise_by_hand(working))
    if not requests:
        return replace(made, problem=_(TOO_LITTLE))
    return replace(made, price=_estimate_price(conversation, working, requests))


def _estimate_price(
    conversation: Conversation, working: WorkingView, requests: list[SummaryWanted]
) -> Price:
    model = conf.summary_model or conversation.model
    prices = load_price_list(model, timezone.now())
    reads = by_hand.estimate_input(requests)
    writes = sum(one.max_tokens for one in requests)
    padded = reads * (100 + _MARGIN) // 100
    try:
        about = dollars(prices.cost(Usage(0, min(writes, _WRITTEN * len(requests)), 0, reads, 0)))
        # A rejected summary is requested once more.
        most = dollars(2 * prices.worst(padded, writes))
    except PriceMissing:
        about = most = ""
    zone = find_zone(working.view, working.policy)
    return Price(model, len(requests), reads, len(zone.messages) if zone else 0, about, most)


def show_proposal(conversation: Conversation, working: WorkingView, known: Proposal) -> Proposed:
    """Return the requested summary for the page; one that came too late says so."""
    spent = ApiCall.objects.filter(
        conversation=conversation,
        purpose="summary",
        tip=known.tip,
        sent_at__gte=known.created_at,
    )
    micros = sum(spent.values_list("result__cost_micros", flat=True).exclude(result=None))
    preview, pieces, reason = None, None, known.reason
    if known.text:
        try:
            preview = build_preview(working, build_change(conversation, known))
        except ManualChangeError as error:
            reason = error.text
        pieces = compare_texts(read_summary(working.view), known.text, DiffBudget())
    model = known.call.model if known.call else ""
    return Proposed(
        known.is_asking, reason, known.text, known.target, model, micros, preview, pieces
    )
