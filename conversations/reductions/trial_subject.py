"""A conversation as input of the policy lab: its stored messages, and its actual figures.

The record holds the originals of the shown path, the system prompt and tools of its last call, the
times of its calls and the token counts of the API, so a replay of the log is judged by the same
numbers as one of a file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.agent.prices import PriceList, PriceMissing
from conversations.agent.usage import Usage
from conversations.budgets.prices import load_price_list
from conversations.context.errors import ContextError
from conversations.context.policy.policy import PRESETS, Policy, build_policy
from conversations.context.view import rules, wire
from conversations.context.view.view import Message, View
from conversations.lab.cache import find_minimum
from conversations.lab.records import Reading, Record, list_calls
from conversations.lab.replay_setup import World
from conversations.lab.report import Report, strip_cache
from conversations.lab.simulated_tokenizer import scale_estimate
from conversations.log.context_size import measure_request
from conversations.log.entries import list_path_numbers
from conversations.log.loaded_path import REMEMBERED
from conversations.log.path import read_path
from conversations.log.tree import build_path_condition
from conversations.models import ApiCall, ApiModel, ApiResult, Conversation
from conversations.models import Message as MessageRow
from conversations.reductions.conversation_settings import (
    choose_rates,
    load_summary_prices,
    write_instructions,
)
from conversations.reductions.policy import effective_policy, list_tool_rules
from conversations.templatetags.recorded import translated
from conversations.toolbox.toolset import build_toolset
from tools.framework.registry import TOOLS
from tools.framework.toolset import Toolset

#: The tool that a recorded agent may lack and ours always has.
RECALL = tuple(Toolset({"recall": TOOLS["recall"]}).definitions())
#: Limits of the correction by reported token counts, in percent of the estimate.
_SCALES = (50, 300)


class TrialError(Exception):
    """A conversation cannot be replayed; the text says why."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The input of a trial: the record, one world for each policy, and the actual figures."""

    record: Record
    worlds: tuple[World, ...]
    actual: Report | None
    size: int
    #: The name of the conversation's own policy.
    own: str


def count_bytes(conversation: Conversation) -> int:
    """Return a lower bound of a replay's bytes: the characters of the shown path and its files."""
    shown = list_path_numbers(conversation)
    rows = MessageRow.objects.filter(conversation=conversation)
    lengths = rows.values_list("seq", Length("content"))
    files: int = conversation.attachments.aggregate(sum=Sum("size"))["sum"] or 0
    return files + sum(int(length) for seq, length in lengths if seq in shown)


def build_record(conversation: Conversation) -> Record:
    """Build the record of the shown path; raises TrialError when there is nothing to replay."""
    entries = [entry for entry in read_path(conversation) if isinstance(entry, Message)]
    messages = tuple(entries)
    called = list_calls(messages)
    if not called:
        raise TrialError(_("There is no answer yet that could be replayed."))
    view = View()
    for message in messages[: called[-1]]:
        view = view.append(message)
    try:
        rules.check_rules(view)
    except ContextError as error:
        words = _("The messages alone make no request that the API takes: %(why)s")
        raise TrialError(words % {"why": error}) from error
    results = _results(conversation)
    by_seq = {result.answer.seq: result for result in results if result.answer is not None}
    system, tools = _head(results[-1].call if results else None, conversation)
    return Record(
        str(conversation.public_id),
        system,
        tools,
        messages,
        readings=tuple(_readings(messages, by_seq)),
        times=_times(conversation, messages, by_seq),
    )


def build_subject(conversation: Conversation) -> Subject:
    """Read everything a trial needs, so that it needs no database; raises TrialError."""
    record = build_record(conversation)
    model = ApiModel.objects.filter(pk=conversation.model).first()
    if model is None:
        words = _("The model %(model)s is not in the catalogue.")
        raise TrialError(words % {"model": conversation.model})
    try:
        own = effective_policy(conversation)
    except ContextError as error:
        raise TrialError(translated(str(error))) from error
    prices = load_price_list(model.pk, timezone.now())
    writer = load_summary_prices(timezone.now())
    results = _results(conversation)
    worlds = tuple(
        World(
            model=model.pk,
            window=model.window,
            policy=policy,
            prices=prices,
            rates=choose_rates(prices),
            minimum=find_minimum(model.pk),
            tokenizer=scale_estimate(_scale(results)),
            recall_tools=RECALL,
            remembered=REMEMBERED,
            clears=model.clears,
            compacts=model.compacts,
            writer=writer,
            writer_rates=writer.rates if writer else None,
        )
        for policy in _policies(own)
    )
    _demand_prices(prices, writer)
    actual = _actual(conversation, prices) if results else None
    size = sum(message.size for message in record.messages)
    return Subject(record, worlds, actual, size, own.name)


def _demand_prices(prices: PriceList, writer: PriceList | None) -> None:
    """Raise TrialError where a price is missing by which a replay is billed."""
    needed = [(prices, kind) for kind in ("input", "output", "cache_write_5m", "cache_read")]
    needed += [(writer, kind) for kind in ("input", "output")] if writer else []
    try:
        for one, kind in needed:
            one.rate(kind, 0)
    except PriceMissing as error:
        raise TrialError(translated(str(error))) from error


def _policies(own: Policy) -> list[Policy]:
    """Return the conversation's own policy, then the other presets."""
    # Presets are compared without the site's numbers, but with the tools' rules.
    rules = {"tool_policies": list_tool_rules()}
    others = (build_policy(name, rules) for name in PRESETS if name != own.name)
    return [own, *(replace(one, actions=own.actions) for one in others)]


def _results(conversation: Conversation) -> list[ApiResult]:
    """Return the results of answered replies of the shown path, oldest first."""
    path = build_path_condition("call__turn", conversation)
    rows = ApiResult.objects.filter(path, call__conversation=conversation, call__purpose="reply")
    rows = rows.exclude(answer=None).select_related("call", "call__envelope", "answer")
    return list(rows.defer("answer__content").order_by("call_id"))


def _head(call: ApiCall | None, conversation: Conversation) -> tuple[str, tuple[Any, ...]]:
    """Return the system prompt and the tools as they were last sent."""
    if call is None:
        return write_instructions(conversation), tuple(build_toolset(conversation).definitions())
    sent = wire.decode(call.envelope.text)
    tools = sent.get("tools", [])
    bare = [{key: tool[key] for key in tool if key != "cache_control"} for tool in tools]
    system = sent.get("system", "")
    if isinstance(system, list):
        system = "\n\n".join(str(block.get("text", "")) for block in system)
    return system, tuple(bare)


def _readings(messages: tuple[Message, ...], by_seq: dict[int, ApiResult]) -> list[Reading]:
    """Return the reported sizes of requests from which nothing had been removed."""
    found = []
    for at, message in enumerate(messages):
        result = by_seq.get(message.seq)
        if result is not None and result.input_tokens is not None and not result.call.view_edits:
            found.append(Reading(at, measure_request(result)))
    return found


def _times(
    conversation: Conversation, messages: tuple[Message, ...], by_seq: dict[int, ApiResult]
) -> tuple[float, ...]:
    """Return the time of each message, for an answer that of its request; () for imports."""
    if not by_seq:
        return ()
    rows = MessageRow.objects.filter(conversation=conversation).values_list("seq", "created_at")
    made = {seq: at.timestamp() for seq, at in rows}
    found: list[float] = []
    for message in messages:
        result = by_seq.get(message.seq)
        at = result.call.sent_at.timestamp() if result else made[message.seq]
        found.append(max(at, found[-1]) if found else at)
    return tuple(found)


def _scale(results: list[ApiResult]) -> int:
    """Return the reported tokens of this conversation in percent of the estimate."""
    counted = estimated = 0
    for result in results:
        if result.input_tokens is not None:
            counted += measure_request(result)
            estimated += result.call.view_tokens + result.call.overhead_tokens
    lowest, highest = _SCALES
    return min(highest, max(lowest, counted * 100 // estimated)) if estimated else 100


def _actual(conversation: Conversation, prices: PriceList) -> Report:
    """Sum up the actual figures of what is replayed, as a report like those of the lab.

    That is the shown path alone, its replies and summaries.
    """
    report = Report("", conversations=1)
    rows = ApiResult.objects.filter(
        build_path_condition("call__turn", conversation),
        call__conversation=conversation,
        call__purpose__in=("reply", "summary"),
    )
    for result in rows.select_related("call").order_by("pk"):
        usage = Usage(
            result.input_tokens or 0,
            result.output_tokens or 0,
            result.cache_read_tokens or 0,
            result.cache_write_tokens or 0,
            0,
        )
        report.cost_uncached += prices.cost(strip_cache(usage))
        if result.call.purpose == "reply":
            report.calls += 1
            report.tokens.add(usage)
            report.peak = max(report.peak, measure_request(result))
            report.cost += result.cost_micros
        else:
            report.summary_calls += 1
            report.summary_cost += result.cost_micros
    path = build_path_condition("turn", conversation)
    changes = conversation.transformations.filter(path, outcome="applied")
    report.applied = Counter(changes.values_list("kind", flat=True))
    for before, after in changes.values_list("tokens_before", "tokens_after"):
        report.freed += before - after
    return report
