"""Asking the model for a summary because a person wants one: an errand, outside of any turn."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from conversations.agent.call import ask_for_summary
from conversations.agent.events import TurnClosed
from conversations.agent.job import Job
from conversations.agent.ports import Refused, Sending, Sent
from conversations.agent.stop import Stopped, Switch
from conversations.context.errors import ContextError
from conversations.context.steps.protocol import SummaryReply
from conversations.db import db
from conversations.live.publish import announce
from conversations.reductions import proposals as services
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.proposals import SummaryRequest
from conversations.reductions.record_change import ManualChangeError
from conversations.runtime.job import build_job
from conversations.runtime.side_calls import SideCallLine, SideCallPorts

if TYPE_CHECKING:
    from conversations.claude.client import Claude

logger = logging.getLogger("agentweb.turns")
_STOPPED = "The server was stopped while it was being written. Ask again."
_FAILED = "Something went wrong on the server; it was logged."


class ProposalCalls(SideCallPorts):
    """`refused` says why there was no call."""

    def __init__(self, errand: SummaryRequest, claude: Claude) -> None:
        super().__init__(errand.lease, claude)
        self._errand = errand
        self.refused = ""

    async def open(self, sending: Sending) -> Sent:
        try:
            sent = await db(services.open_summary_call, errand=self._errand, sending=sending)
        except Refused as error:
            self.refused = error.text
            raise
        self._begin()
        return sent


async def write_proposal(proposal_id: int, claude: Claude, switch: Switch) -> None:
    """Ask for what a person wants, and write down what came of it."""
    try:
        errand = await db(services.read_request, proposal_id=proposal_id)
        if errand is None:
            text = "The conversation went on before it was asked for."
            await db(services.store_answer, proposal_id=proposal_id, reason=text, change=None)
            return
        work = build_job(await db(read_job_facts, errand.lease.conversation_id))
        calls = ProposalCalls(errand, claude)
        await _ask_model(errand, work, calls, switch)
        await announce(errand.lease.conversation_id, TurnClosed(errand.lease.number))
    except Stopped:
        await db(services.store_answer, proposal_id=proposal_id, reason=_STOPPED, change=None)
    except (ManualChangeError, ContextError) as error:
        await db(services.store_answer, proposal_id=proposal_id, reason=str(error), change=None)
    except Exception:
        logger.exception("proposal %s failed", proposal_id)
        await db(services.store_answer, proposal_id=proposal_id, reason=_FAILED, change=None)


async def _ask_model(
    errand: SummaryRequest, work: Job, calls: ProposalCalls, switch: Switch
) -> None:
    """Pass the questions on; the last words that were accepted are what is proposed."""
    line = SideCallLine(calls, calls, switch)
    reply: SummaryReply | None = None
    wanted = next(errand.steps)
    while True:
        envelope = work.summary_envelope(wanted.system, wanted.max_tokens)
        reply, _ = await ask_for_summary(line, envelope, wanted.text)
        try:
            wanted = errand.steps.send(reply)
        except StopIteration as stop:
            change = stop.value
            break
    if reply is not None and change is not None and change.outcome == "applied":
        await db(
            services.store_answer, proposal_id=errand.proposal_id, text=reply.text, change=None
        )
        return
    reason = calls.refused or (change.reason if change is not None else _FAILED)
    await db(services.store_answer, proposal_id=errand.proposal_id, reason=reason, change=change)
