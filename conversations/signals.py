"""Hooks for a site's own code: modules that AGENTWEB_HOOKS names connect to them when imported.

`transformation_proposed` is sent before a transformation is recorded, with `conversation_id` and
`change`; a receiver that returns a non-empty text vetoes it with that reason, which is recorded.
One that raises vetoes it, too: what it protects stays, and the turn goes on. It is not sent for a
repair, because the conversation cannot continue without it.
`transformation_recorded` is sent after its commit, with `transformation`.
"""

from __future__ import annotations

from django.dispatch import Signal

from conversations.context.translation import gettext_noop, mark_recorded
from conversations.context.view.edits import Transformation

_FAILED = mark_recorded(gettext_noop("the site's own check of it failed; the log says how"))
transformation_proposed = Signal()
transformation_recorded = Signal()


def collect_vetoes(conversation_id: int, change: Transformation) -> str:
    """Send `transformation_proposed`; return the reasons of the vetoes, "" for none."""
    answers = transformation_proposed.send_robust(
        sender=Transformation, conversation_id=conversation_id, change=change
    )
    reasons = (_FAILED if isinstance(one, Exception) else str(one or "") for _, one in answers)
    return "; ".join(filter(None, reasons))
