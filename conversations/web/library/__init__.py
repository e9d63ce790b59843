"""Conversations as things people keep: found, named, put away, taken along.

Everything works as plain links and forms; with htmx the same views answer with the part of the page
that changes. Whoever may not see a conversation gets the same 404 as for one that never was.
"""

from __future__ import annotations
