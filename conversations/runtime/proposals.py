"""Side calls that request a summary from the model for a person."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from django.db import InterfaceError, OperationalError

from conversations.agent.call import request_summary
from conversations.agent.events import TurnClosed
from conversations.agent.finish import INTERNAL
from conversations.agent.job import Job
from conversations.agent.ports import Refused, Sending, Sent
from conversations.agent.stop import Stopped, Switch
from conversations.conf import conf
from conversations.context.errors import ContextError
from conversations.context.steps.protocol import SummaryReply
from conversations.context.steps.summary_versions import read_written
from conversations.db import run_db, run_db_heartbeat
from conversations.live.publish import announce
from conversations.reductions import proposals
from conversations.reductions.conversation_settings import read_job_facts
from conversations.reductions.proposals import SummaryRequest
from conversations.reductions.record_change import ManualChangeError
from conversations.runtime.job import build_job
from conversations.runtime.side_calls import SideCallPorts, SideCalls
from conversations.runtime.turn import RENEWALS

if TYPE_CHECKING:
    from conversations.claude.client import Claude

logger = logging.getLogger("agentweb.turns")


class ProposalCalls(SideCalls):
    """The ports of the call; `refused` is the reason if no call was made."""

    def __init__(self, request: SummaryRequest, claude: Claude) -> None:
        super().__init__(request.lease, claude)
        self._request = request
        self.refused = ""

    async def open(self, sending: Sending) -> Sent:
        try:
            sent = await run_db(proposals.open_summary_call, request=self._request, sending=sending)
        except Refused as error:
            self.refused = error.text
            raise
        self._begin()
        return sent


async def write_proposal(proposal_id: int, claude: Claude, switch: Switch) -> None:
    """Request the summary from the model and store its text or the reason for failure.

    Nothing is done where another process does it.
    """
    if not await run_db(proposals.claim_proposal, proposal_id=proposal_id):
        return
    keeper = asyncio.create_task(_keep_claim(proposal_id))
    try:
        request = await run_db(proposals.read_request, proposal_id=proposal_id)
        if request is None:
            await run_db(
                proposals.store_answer, proposal_id=proposal_id, reason=proposals.MOVED, change=None
            )
            return
        work = build_job(await run_db(read_job_facts, request.lease.conversation_id))
        calls = ProposalCalls(request, claude)
        await _ask_model(request, work, calls, switch)
        await announce(request.lease.conversation_id, TurnClosed(request.lease.number))
    except Stopped:
        await run_db(
            proposals.store_answer, proposal_id=proposal_id, reason=proposals.STOPPED, change=None
        )
    except (ManualChangeError, ContextError) as error:
        await run_db(
            proposals.store_answer, proposal_id=proposal_id, reason=str(error), change=None
        )
    except Exception:
        logger.exception("proposal %s failed", proposal_id)
        await run_db(proposals.store_answer, proposal_id=proposal_id, reason=INTERNAL, change=None)
    finally:
        keeper.cancel()


async def _keep_claim(proposal_id: int) -> None:
    """Renew the claim, so that the request of a dead process is known within a lease."""
    while True:
        await asyncio.sleep(conf.lease_seconds / RENEWALS)
        try:
            await run_db_heartbeat(proposals.renew_claim, proposal_id=proposal_id)
        except (OperationalError, InterfaceError):
            logger.warning("proposal %s: the claim was not renewed", proposal_id)


async def _ask_model(
    request: SummaryRequest, work: Job, calls: ProposalCalls, switch: Switch
) -> None:
    """Run the steps of the summary; the text that they would put in place is the proposal."""
    ports = SideCallPorts(calls, calls, switch)
    reply: SummaryReply | None = None
    wanted = next(request.steps)
    while True:
        reply, _ = await request_summary(ports, work, wanted)
        try:
            wanted = request.steps.send(reply)
        except StopIteration as stop:
            change = stop.value
            break
    if change is not None and change.outcome == "applied":
        text = read_written(change)
        await run_db(
            proposals.store_answer, proposal_id=request.proposal_id, text=text, change=None
        )
        return
    reason = calls.refused or (change.reason if change is not None else INTERNAL)
    await run_db(
        proposals.store_answer, proposal_id=request.proposal_id, reason=reason, change=change
    )
