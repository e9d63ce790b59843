"""What a turn does when the API permanently refuses its request, although no known rule is broken.

The view is repaired according to the API's message, the repair is recorded, and the request is sent
again; up to a bound also several times, as long as each message names another place, which shows
that the repair before it helped. If that is refused as well, or there is nothing to repair, the
turn fails and its messages are removed from later requests, so that the next one is not refused for
the same reason; a repair that did not help is taken back. A refused request is free: nothing is
paid twice.
"""

from __future__ import annotations

from dataclasses import replace

from conversations.agent.call import request_count
from conversations.agent.job import Job, LoadedConversation
from conversations.agent.ports import ModelFailed, Ports
from conversations.context.steps import repair_refused
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import Transformation
from conversations.context.view.view import View

#: Error codes of requests that a retry alone cannot help.
REFUSED_FOR_GOOD = ("invalid_request", "signature")
#: Repairs after a refusal in one turn.
MOST_REPAIRS = 8
NOT_TAKEN = mark_recorded(
    gettext_noop(
        "The API does not take this message. It is kept here and not sent again: change it and try"
        " again, or ask an administrator, who can read what the API said."
    )
)


class RefusedRequests:
    """The refusals of one turn; `count` of them were repaired already."""

    def __init__(self, job: Job, ports: Ports, count: int) -> None:
        self.job, self.ports, self.count = job, ports, count
        #: The view before the last repair made in this run.
        self.before: View | None = None
        #: The places that the API has named in this run.
        self.places: set[str] = set()

    async def repair(
        self, state: LoadedConversation, error: ModelFailed, first: int
    ) -> LoadedConversation:
        """Return the conversation with a repair; raises ModelFailed when the turn must end."""
        if error.was_shown or repair_refused.names_parameter(error.api_text):
            raise error
        view = state.view
        change = None
        is_new = self._is_new_place(error.api_text)
        if is_new:
            # The repair before it helped, so it is kept.
            self.before = None
        if not self.count or (is_new and self.count < MOST_REPAIRS):
            change = await self._choose(repair_refused.list_repairs(view, error.api_text, first))
        if change is None:
            policy = state.add_decisions(self.job.policy)
            await self._record(
                repair_refused.leave_out_turn(view, first, error.api_text, self.before, policy)
            )
            raise replace(error, text=NOT_TAKEN) from error
        self.count += 1
        self.before = view
        await self._record(change)
        return replace(state, view=change.view_after)

    def _is_new_place(self, words: str) -> bool:
        """Return whether the API names a place that it has not named before in this run."""
        place = repair_refused.find_place(words)
        is_new = bool(place) and place not in self.places
        self.places.add(place)
        return is_new

    async def _choose(self, changes: tuple[Transformation, ...]) -> Transformation | None:
        """Return the first change whose request the API agrees to count, else the first change.

        Counting is free and has the same rules as sending.
        """
        if len(changes) > 1:
            for change in changes:
                if await request_count(self.ports, self.job, change.view_after) is not None:
                    return change
        return changes[0] if changes else None

    async def _record(self, change: Transformation) -> None:
        await self.ports.log.record(change, self.job.policy, None)
