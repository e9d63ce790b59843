"""The view as a pure function of what is stored: fold the entries of a path, first to last."""

from __future__ import annotations

from collections.abc import Iterable

from conversations.context.steps.kinds import TransformationKind
from conversations.context.view import edits
from conversations.context.view.edits import Edit
from conversations.context.view.view import Message, View

#: A message, or a transformation that was applied.
Entry = Message | tuple[TransformationKind, tuple[Edit, ...]]


def replay_entries(entries: Iterable[Entry], view: View | None = None) -> View:
    """Return the view after the entries, starting from `view` or from an empty one."""
    view = View() if view is None else view
    for entry in entries:
        if isinstance(entry, Message):
            view = view.append(entry)
        else:
            kind, changes = entry
            view = edits.apply(view, kind, changes)
    return view
