"""Limits on the size of request bodies: by path, and for all requests together.

Forms are small; the few URLs that take files set a larger limit in the settings. Large bodies share
one allowance of the process. When it is used up a request is refused with "try again later", so
that many at once do not fill the disk or the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from django.conf import settings
from django.urls import Resolver404, resolve

from conversations.conf import conf
from conversations.context.tokens import media
from conversations.web.library.workspace import MOST_UPLOADS

#: Bytes of a form besides its fields and files: names, boundaries, the token.
AROUND = 200_000
#: A body up to this size is always accepted.
SMALL = 64_000
#: Most bytes of larger bodies that a process holds at the same time.
MOST_HELD = 200_000_000


def _of_message() -> int:
    return min(conf.max_attachments * media.MOST_BYTES, conf.max_unsent_bytes) + _of_page()


def _of_page() -> int:
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


#: The views that accept files, by name, with the bytes each accepts.
TAKERS: dict[str, Callable[[], int]] = {
    "start": _of_message,
    "send": _of_message,
    "files": lambda: media.MOST_BYTES,
    "workspace": lambda: min(MOST_UPLOADS * conf.workspace_file_bytes, conf.workspace_bytes),
    "import": lambda: conf.max_import_bytes,
    "import_prompts": lambda: conf.max_import_bytes,
    "admin:budgets_import": _of_page,
    "admin:prices_import": _of_page,
}


def find_body_limit(path: bytes) -> int:
    """Return the most bytes that the body of a request to this path may have."""
    try:
        found = resolve(unquote(path.partition(b"?")[0].decode("ascii")))
    except (Resolver404, UnicodeDecodeError, ValueError):
        return SMALL
    return TAKERS.get(found.view_name, _of_page)() + AROUND


class Held:
    """The bytes of large bodies that a process holds."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> bool:
        """Reserve `size` bytes; return False when there is no room."""
        if self.size + size > MOST_HELD:
            return False
        self.size += size
        return True

    def give_back(self, size: int) -> None:
        self.size -= size


held = Held()
