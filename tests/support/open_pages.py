"""An open page without its socket: a reader at the hub with the state of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conversations.live.hub import Frame, Reader, Topic, hub


@contextmanager
def opened(conversation_id: int, version: int) -> Iterator[Topic]:
    """Open a page of this version, and yield its topic."""
    topic = hub.enter(conversation_id)
    reader = Reader(topic)
    reader.begin(version)
    # The topic drops what every page has read.
    frames: list[Frame] = []
    topic.shown_frames = frames  # type: ignore[attr-defined]
    topic.readers.add(reader)

    def publish(frame: Frame) -> None:
        Topic.publish(topic, frame)
        frames.append(frame)
        # As the socket soon does: the page has the frame and its version.
        reader.read()

    topic.publish = publish  # type: ignore[method-assign]
    try:
        yield topic
    finally:
        topic.readers.discard(reader)
        hub.leave(conversation_id)


def shown(topic: Topic) -> list[str]:
    """Return the HTML of all frames of a topic."""
    return [frame.html or "" for frame in topic.shown_frames]  # type: ignore[attr-defined]
