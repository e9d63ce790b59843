"""What templates are given of a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

#: The largest box of an image in a transcript, in pixels.
MOST_WIDTH, MOST_HEIGHT = 352, 288


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of a message. `url` is where its bytes are; "" of one that cannot be shown.

    An image that was imported in a form we do not keep as a file has its data as `url` and no `id`.
    """

    name: str
    media_type: str
    is_image: bool
    url: str = ""
    id: str = ""
    size: int = 0
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    tokens: int = 0
    is_sent: bool = True
    created_at: datetime | None = None
    #: The chat it was sent in, for a list of files.
    conversation: str = ""
    conversation_title: str = ""

    @property
    def box(self) -> tuple[int, int] | None:
        """Give the size an image is shown in, known before it is loaded."""
        if not (self.width and self.height):
            return None
        scale = min(1, MOST_WIDTH / self.width, MOST_HEIGHT / self.height)
        return max(1, round(self.width * scale)), max(1, round(self.height * scale))

    @property
    def kind(self) -> str:
        """Name the type for people."""
        return self.media_type.rpartition("/")[2].replace("plain", "text").upper()


@dataclass(frozen=True, slots=True)
class FilesPage:
    """`after` is the place of the last row when there are more."""

    rows: tuple[Attached, ...] = ()
    after: str = ""
