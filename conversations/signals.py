"""Hooks for the site's own code.

`transformation_proposed` is sent before a transformation is recorded, with `conversation_id` and
`change`; a receiver that returns a non-empty text vetoes it with that reason, which is recorded.
`transformation_recorded` is sent after its commit, with `transformation`.
"""

from __future__ import annotations

from django.dispatch import Signal

transformation_proposed = Signal()
transformation_recorded = Signal()
