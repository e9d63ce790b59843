"""Asking the model for a summary because a person wants one: calls outside of any turn's run.

It belongs to the server like a turn: the page may be closed meanwhile. A stop of the server ends
it, and the sweep closes what was not written down.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from conversations.adapters import TurnCalls
from conversations.attempt import ask_for_summary
from conversations.claude import Claude
from conversations.context.errors import ContextError
from conversations.context.situation import SummaryReply
from conversations.context.view import Message
from conversations.db import db
from conversations.events import MeterMoved, TurnClosed
from conversations.given import Job
from conversations.jobs import job
from conversations.ports import Ending, Refused, Sending, Sent
from conversations.queries.jobs import job_facts
from conversations.services import proposals as services
from conversations.services.handmade import HandError
from conversations.services.proposals import Errand
from conversations.services.titles import close_title
from conversations.stage import announce
from conversations.switch import Stopped, Switch

logger = logging.getLogger("agentweb.turns")
#: Seconds a stopped call has to write down how it ended.
LAST_SECONDS = 5
_STOPPED = "The server was stopped while it was being written. Ask again."
_FAILED = "Something went wrong on the server; it was logged."


class ProposalCalls(TurnCalls):
    """The Calls and Model ports of a conversation at rest; `refused` says why there was no call."""

    def __init__(self, errand: Errand, claude: Claude) -> None:
        super().__init__(errand.lease, claude)
        self._errand = errand
        self.refused = ""

    async def open(self, sending: Sending) -> Sent:
        try:
            sent = await db(services.open_proposed, errand=self._errand, sending=sending)
        except Refused as error:
            self.refused = error.text
            raise
        self._begin()
        return sent

    async def close(self, sent: Sent, ending: Ending) -> Message | None:
        await db(close_title, call_id=sent.call, ending=ending, timing=self._timing())
        return None


@dataclass(frozen=True, slots=True)
class _Line:
    calls: ProposalCalls
    model: ProposalCalls
    switch: Switch


class Proposals:
    """The summaries on their way in this process."""

    def __init__(self) -> None:
        self._asking: dict[asyncio.Task[None], Switch] = {}

    def begin(self, proposal_id: int, claude: Claude) -> None:
        """Ask for what a person wants."""
        switch = Switch()
        task = asyncio.create_task(
            _propose(proposal_id, claude, switch), name=f"proposal-{proposal_id}"
        )
        self._asking[task] = switch
        task.add_done_callback(lambda done: self._asking.pop(done, None))

    async def drain(self) -> None:
        """Stop what is on its way."""
        for switch in self._asking.values():
            switch.request("shutdown")
        if self._asking:
            await asyncio.wait(list(self._asking), timeout=LAST_SECONDS)


async def _propose(proposal_id: int, claude: Claude, switch: Switch) -> None:
    try:
        errand = await db(services.errand, proposal_id=proposal_id)
        if errand is None:
            text = "The conversation went on before it was asked for."
            await db(services.answer, proposal_id=proposal_id, reason=text, change=None)
            return
        work = job(await db(job_facts, errand.lease.conversation_id))
        calls = ProposalCalls(errand, claude)
        await _ask(errand, work, _Line(calls, calls, switch))
        for event in (TurnClosed(errand.lease.number), MeterMoved()):
            await announce(errand.lease.conversation_id, event)
    except Stopped:
        await db(services.answer, proposal_id=proposal_id, reason=_STOPPED, change=None)
    except (HandError, ContextError) as error:
        await db(services.answer, proposal_id=proposal_id, reason=str(error), change=None)
    except Exception:
        logger.exception("proposal %s failed", proposal_id)
        await db(services.answer, proposal_id=proposal_id, reason=_FAILED, change=None)


async def _ask(errand: Errand, work: Job, line: _Line) -> None:
    """Pass the questions on; the last words that were accepted are what is proposed."""
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
        await db(services.answer, proposal_id=errand.proposal_id, text=reply.text, change=None)
        return
    reason = line.calls.refused or (change.reason if change is not None else _FAILED)
    await db(services.answer, proposal_id=errand.proposal_id, reason=reason, change=change)
