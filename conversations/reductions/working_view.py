"""The view that manual changes work on: messages at the tip, figures, prices, pins."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils import timezone

from conversations.budgets.prices import load_price_list
from conversations.context.policy.policy import Policy
from conversations.context.steps.by_hand import build_working_view
from conversations.context.steps.protocol import Situation
from conversations.context.steps.summary_versions import find_covered_zone
from conversations.context.steps.summary_zone import Zone
from conversations.context.steps.working_view import WorkingView
from conversations.context.view.edits import SpliceMessages, load_edits
from conversations.context.view.view import View
from conversations.log.path import Change, fold_entry, read_path
from conversations.log.turn_state import load_state
from conversations.models import ApiModel, Conversation
from conversations.reductions.pins import list_pins

#: The window assumed for a model that is no longer in the catalogue.
_WINDOW = 200_000


def load_working_view(conversation: Conversation, policy: Policy) -> WorkingView:
    """Return the view at the tip with its figures; pinned parts may not be changed."""
    model = ApiModel.objects.filter(pk=conversation.model).first()
    now = timezone.now()
    loaded = load_state(conversation, conversation.model)
    known = Situation(
        model=conversation.model,
        window=model.window if model else _WINDOW,
        # The size of system prompt and tools, as the last call had them.
        overhead=loaded.overhead or 0,
        report=loaded.report,
        bound_to="",
        binding="",
        rates=load_price_list(conversation.model, now).rates,
        cache_age=max(0, int(now.timestamp() - loaded.called_at)),
        cache_lifetime=loaded.cached.seconds,
        hour_tokens=loaded.cached.tokens,
        edited_from=loaded.edited_from,
        pins=list_pins(conversation),
        decisions=loaded.decisions,
    )
    return build_working_view(loaded.view, known, policy)


@dataclass(frozen=True, slots=True)
class CurrentSummary:
    """The summary on the shown path: its versions, and what the first one replaced.

    `before` is the view it was made of; `zone` is None where the API wrote the summary.
    """

    versions: tuple[Change, ...]
    before: View
    zone: Zone | None

    @property
    def current(self) -> int:
        return self.versions[-1].seq


def find_summary(conversation: Conversation, seq: int = 0) -> CurrentSummary | None:
    """Return the last summary of the path, or the one that entry `seq` is a version of."""
    view = View()
    found: CurrentSummary | None = None
    for entry in read_path(conversation):
        if isinstance(entry, Change) and entry.kind == "summary" and entry.outcome == "applied":
            edits = load_edits(entry.edits)
            if found is None or any(isinstance(edit, SpliceMessages) for edit in edits):
                if found is not None and seq in {version.seq for version in found.versions}:
                    return found
                found = CurrentSummary((entry,), view, find_covered_zone(view, edits))
            else:
                found = replace(found, versions=(*found.versions, entry))
        view = fold_entry(view, entry)
    if seq and found is not None and seq not in {version.seq for version in found.versions}:
        return None
    return found
