"""Pages about conversations and files: lists, search, menu, trash, exports, imports, workspace.

Everything works with plain links and forms; for htmx the same views return the part of the page
that changes. Anyone who may not see a conversation gets the same 404 as for one that never existed.
"""

from __future__ import annotations
