"""Rebuild every request and compare its digest with the one recorded when it was sent.

The log's tree is folded once, parents before children, and each digest continues that of the view
before, so the cost is that of the log, not of the log times its calls. A body is what
`envelope.join_body` and `View.body` join; tests hold the two equal.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from conversations.context.view import cache_breakpoints
from conversations.context.view.cache_breakpoints import Lifetime
from conversations.context.view.envelope import join_body, read_lifetime
from conversations.context.view.view import Message, Trail, View
from conversations.log.findings import (
    DAMAGE,
    Problem,
    Tally,
    describe_error,
    read_rows,
    split_chunks,
)
from conversations.log.path import Entries, fold_entry, read_entries
from conversations.models import ApiCall, Blob, Conversation, Envelope


def check_bodies(conversation: Conversation, tally: Tally) -> Iterator[Problem]:
    """Rebuild the body of each call of the conversation and yield what differs."""
    place = str(conversation.public_id)
    calls, bad = _read_calls(conversation)
    for key, error in bad:
        tally.mismatches += 1
        yield Problem("apicall", key, f"cannot be read: {error}", place)
    texts = _read_envelopes(calls)
    for call, what in _compare_bodies(conversation, calls, texts):
        if what:
            tally.mismatches += 1
            yield Problem("apicall", str(call.pk), what, place)
        else:
            tally.verified += 1


def _read_calls(conversation: Conversation) -> tuple[list[ApiCall], list[tuple[str, str]]]:
    mine = ApiCall.objects.filter(conversation=conversation).order_by("pk")
    keys = list(mine.filter(link__lte=conversation.links).values_list("pk", flat=True))
    found: list[ApiCall] = []
    bad: list[tuple[str, str]] = []
    for some in split_chunks(keys):
        for key, row in read_rows(mine, some).items():
            if isinstance(row, Exception):
                bad.append((str(key), describe_error(row)))
            else:
                found.append(row)
    return found, bad


def _read_envelopes(calls: list[ApiCall]) -> dict[str, str]:
    """Return the texts of the envelopes by digest, unreadable ones left out."""
    keys = sorted({call.envelope_id for call in calls})
    return {
        key: row.text
        for some in split_chunks(keys)
        for key, row in read_rows(Envelope.objects.all(), some).items()
        if isinstance(row, Envelope)
    }


def _compare_bodies(
    conversation: Conversation, calls: list[ApiCall], texts: dict[str, str]
) -> Iterator[tuple[ApiCall, str | None]]:
    """Yield each call with the flaw of its body, None if there is none."""
    by_tip: dict[int, list[ApiCall]] = {}
    for call in calls:
        if call.envelope_id not in texts:
            yield call, "its envelope cannot be read"
        elif call.messages_id is not None:
            yield call, _compare_stored_body(call, texts[call.envelope_id])
        else:
            by_tip.setdefault(call.tip, []).append(call)
    if not by_tip:
        return
    try:
        log = read_entries(conversation)
    except DAMAGE as error:
        for call in chain.from_iterable(by_tip.values()):
            yield (
                call,
                f"its body cannot be rebuilt: the log cannot be read: {describe_error(error)}",
            )
        return
    yield from _compare_at_tips(by_tip, _fold_all(log), texts)


def _compare_at_tips(
    by_tip: dict[int, list[ApiCall]], views: Iterator[tuple[int, View | str]], texts: dict[str, str]
) -> Iterator[tuple[ApiCall, str | None]]:
    growing = IncrementalDigest()
    for seq, view in views:
        for call in by_tip.pop(seq, ()):
            if isinstance(view, str):
                yield call, f"its body cannot be rebuilt: {view}"
            else:
                yield call, _compare_view_body(call, growing, texts[call.envelope_id], view)
    for call in chain.from_iterable(by_tip.values()):
        yield call, f"its body cannot be rebuilt: entry {call.tip} is not in the log"


def _compare_view_body(
    call: ApiCall, growing: IncrementalDigest, envelope: str, view: View
) -> str | None:
    try:
        return _compare_digest(call, *growing.digest(envelope, view))
    except DAMAGE as error:
        return f"its body cannot be rebuilt: {describe_error(error)}"


def _compare_stored_body(call: ApiCall, envelope: str) -> str | None:
    found = read_rows(Blob.objects.all(), [call.messages_id]).get(call.messages_id)
    if not isinstance(found, Blob):
        return "its messages cannot be read"
    raw = join_body(envelope, found.text).encode()
    return _compare_digest(call, "sha256:" + hashlib.sha256(raw).hexdigest(), len(raw))


def _compare_digest(call: ApiCall, digest: str, size: int) -> str | None:
    if (digest, size) == (call.body_digest, call.body_bytes):
        return None
    recorded = f"{call.body_digest} ({call.body_bytes} bytes)"
    return f"its body rebuilds to {digest} ({size} bytes), recorded was {recorded}"


def _fold_all(log: Entries) -> Iterator[tuple[int, View | str]]:
    """Yield the number of each entry with the view after it, or why there is none."""
    views: dict[int, View | str] = {0: View()}
    children = Counter(parent for parent, _ in log.values())
    yield 0, View()
    for seq in sorted(log):
        view = views[seq] = _fold_after(log, views, seq)
        yield seq, view
        parent = log[seq][0]
        children[parent] -= 1
        if not children[parent]:
            views.pop(parent, None)
        if not children[seq]:
            del views[seq]


def _fold_after(log: Entries, views: dict[int, View | str], seq: int) -> View | str:
    parent, entry = log[seq]
    before = views.get(parent, f"entry {seq} follows {parent}, which is not before it")
    if isinstance(before, str):
        return before
    try:
        return fold_entry(before, entry)
    except DAMAGE as error:
        return f"entry {seq} does not apply: {describe_error(error)}"


class IncrementalDigest:
    """The digest of a body, continued while messages are appended.

    The last message before the cache breakpoint may be written with it in one body and without it
    in the next. So the text up to that message is hashed separately, and the digest continues from
    there when the breakpoint has moved.
    """

    def __init__(self) -> None:
        self._envelope: str | None = None
        self._lifetime: Lifetime = "5m"
        self._trail: Trail | None = None
        self._place: cache_breakpoints.Breakpoint | None = None
        self._length = 0
        self._before = self._whole = _PartialBody()

    def digest(self, envelope: str, view: View) -> tuple[str, int]:
        """Return digest and length of the body with this envelope and view."""
        messages = view.messages
        if envelope != self._envelope:
            self._lifetime = read_lifetime(envelope)
        place = cache_breakpoints.choose_breakpoint(messages, self._lifetime)
        is_longer = view.trail is self._trail and view.length >= self._length
        if not is_longer or envelope != self._envelope:
            self._before = _PartialBody()
            self._before.feed(join_body(envelope, "[")[:-1])
            self._whole = self._before.copy()
        elif place != self._place:
            self._whole = self._before.copy()
        self._envelope, self._trail = envelope, view.trail
        self._place, self._length = place, view.length
        self._before.grow(messages[: max(0, cache_breakpoints.find_settled(messages))], None)
        self._whole.grow(messages, place)
        return self._whole.digest


class _PartialBody:
    """The beginning of a body, with its first `length` messages."""

    def __init__(self) -> None:
        self.hash, self.size, self.length, self.comma = hashlib.sha256(), 0, 0, ""

    def copy(self) -> _PartialBody:
        part = _PartialBody()
        part.hash, part.size = self.hash.copy(), self.size
        part.length, part.comma = self.length, self.comma
        return part

    def grow(self, messages: Sequence[Message], place: cache_breakpoints.Breakpoint | None) -> None:
        """Continue to the end of the messages, after the first `length` of them."""
        for text in cache_breakpoints.render_texts(messages, place, self.length):
            self.feed(self.comma + text)
            self.comma = ","
        self.length = max(self.length, len(messages))

    def feed(self, text: str) -> None:
        raw = text.encode()
        self.hash.update(raw)
        self.size += len(raw)

    @property
    def digest(self) -> tuple[str, int]:
        whole = self.hash.copy()
        whole.update(b"]}")
        return "sha256:" + whole.hexdigest(), self.size + 2
