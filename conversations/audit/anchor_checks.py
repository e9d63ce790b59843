"""Checks of the database against the anchors.

Each chain is compared with all its anchors while it is walked (audit/chain_links.py). This module
checks the file itself, missing chains, and a database that as a whole is older than its anchors,
which is one problem and not one for each conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from conversations.audit.anchor_file import (
    SITE_NAME,
    AnchorError,
    Head,
    find_anchor_path,
    read_anchors,
)
from conversations.log.chain import OWNED, SITE
from conversations.log.findings import Problem, split_chunks
from conversations.models import AnchorMark, Conversation, Erasure, SiteChain


@dataclass(frozen=True, slots=True)
class AnchoredLink:
    """The link and value of a chain in one anchor."""

    link: int
    chain: bytes
    anchor: int


@dataclass(slots=True)
class AnchoredChains:
    """The anchored links of all chains by name; `last` is the last anchor's number."""

    by_name: dict[str, list[AnchoredLink]] = field(default_factory=dict)
    times: dict[int, str] = field(default_factory=dict)
    last: int = 0
    #: The digest of the last line according to the database.
    marked: str = ""
    problems: list[Problem] = field(default_factory=list)

    def of(self, name: str) -> dict[int, tuple[str, str]]:
        """Return the anchored values of a chain by link, each with a text that names its anchor."""
        found: dict[int, tuple[str, str]] = {}
        for pin in self.by_name.get(name, ()):
            words = f"anchor {pin.anchor} of {self.times[pin.anchor]}"
            found.setdefault(pin.link, (_unpack_chain(pin.chain), words))
        return found


def read_anchored_chains() -> AnchoredChains:
    """Read the anchors; problems of the file as a whole are in `problems`."""
    path = find_anchor_path()
    pins = AnchoredChains()
    if path is None:
        return pins
    # The mark is read first, because writers write the file first.
    mark = AnchorMark.objects.filter(pk=1).first() or AnchorMark()
    try:
        _read_file(path, mark, pins)
    except FileNotFoundError:
        if mark.number:
            what = (
                f"missing: the database was anchored {mark.number} times, last {_format_time(mark)}"
            )
            pins.problems.append(Problem("anchors", str(path), what))
        return pins
    except (AnchorError, OSError) as error:
        pins.problems.append(Problem("anchors", str(path), f"changed: {error}"))
        return pins
    if pins.last < mark.number:
        what = (
            f"missing: it ends with anchor {pins.last}, and the database was anchored as"
            f" {mark.number} {_format_time(mark)}"
        )
        pins.problems.append(Problem("anchors", str(path), what))
    elif mark.number and pins.marked != mark.digest:
        what = f"changed: anchor {mark.number} is not the one that the database remembers"
        pins.problems.append(Problem("anchors", str(path), what))
    elif pins.last > mark.number:
        _check_later(pins, mark)
    return pins


def _read_file(path: Path, mark: AnchorMark, pins: AnchoredChains) -> None:
    for anchor in read_anchors(path):
        pins.times[anchor.number], pins.last = anchor.at, anchor.number
        if anchor.number == mark.number:
            pins.marked = anchor.digest
        if anchor.back_to is not None:
            _drop_after(pins, anchor.back_to)
        for head in anchor.heads:
            one = AnchoredLink(head.links, _pack_chain(head.chain), anchor.number)
            pins.by_name.setdefault(head.name, []).append(one)


def _drop_after(pins: AnchoredChains, after: int) -> None:
    for name, found in list(pins.by_name.items()):
        kept = [pin for pin in found if pin.anchor <= after]
        if kept:
            pins.by_name[name] = kept
        else:
            del pins.by_name[name]


def _check_later(pins: AnchoredChains, mark: AnchorMark) -> None:
    """Report once if the database is older than the file, and drop the anchors it does not know."""
    later = [
        Head(name, pin.link, _unpack_chain(pin.chain))
        for name, found in pins.by_name.items()
        for pin in found
        if pin.anchor > mark.number
    ]
    missed = find_unmatched(later)
    if not missed:
        return
    known = f"anchor {mark.number} {_format_time(mark)}" if mark.number else "no anchor"
    what = (
        f"older than its anchors: it knows {known}, and they go on to {pins.last} of"
        f" {pins.times[pins.last]}; {len(missed)} chains have lost rows since, the first is"
        f" {missed[0].name} behind link {_count_links(missed[0].name)} of {missed[0].links}"
    )
    pins.problems.append(Problem("database", "", what))
    _drop_after(pins, mark.number)


def find_unmatched(heads: Sequence[Head]) -> list[Head]:
    """Return the heads that are neither in the database nor explained by an erasure."""
    found = []
    for some in split_chunks(heads):
        present = _find_present([head.name for head in some])
        missing = [head for head in some if head.name not in present]
        found += [
            head
            for head in some
            if head.name in present and not _holds_head(head, *present[head.name])
        ]
        found += find_unaccounted(missing)
    return found


def find_unaccounted(heads: Sequence[Head]) -> list[Head]:
    """Return the heads of missing conversations that no erasure explains."""
    found = []
    for some in split_chunks(heads):
        names = [head.name for head in some if head.name != SITE_NAME]
        rows = Erasure.objects.filter(conversation__in=names)
        ends = {
            str(name): (links, tail)
            for name, links, tail in rows.values_list("conversation", "links", "tail")
        }
        for head in some:
            links, tail = ends.get(head.name, (-1, ""))
            if links < head.links or (links == head.links and tail != head.chain):
                found.append(head)
    return found


def check_missing_chains(pins: AnchoredChains) -> Iterator[Problem]:
    """Yield the chains that were anchored and are missing now."""
    names = list(pins.by_name)
    for some in split_chunks(names):
        present = _find_present(some)
        last = [(name, pins.by_name[name][-1]) for name in some if name not in present]
        times = {name: pin.anchor for name, pin in last}
        for head in find_unaccounted(
            [Head(name, pin.link, _unpack_chain(pin.chain)) for name, pin in last]
        ):
            at = f"anchor {times[head.name]} of {pins.times[times[head.name]]}"
            what = f"missing: {at} has its {head.links} links, and no erasure says where they went"
            yield Problem("conversation", head.name, what, head.name)


def _find_present(names: Sequence[str]) -> dict[str, tuple[int, int, str]]:
    """Return key, links and chain of the existing chains by name; the site's key is 0."""
    keys = [UUID(name) for name in names if name != SITE_NAME]
    rows = Conversation.objects.filter(public_id__in=keys)
    found = {
        str(name): (key, links, chain)
        for name, key, links, chain in rows.values_list("public_id", "pk", "links", "chain")
    }
    if SITE_NAME in names:
        site = SiteChain.objects.filter(pk=1).first() or SiteChain()
        found[SITE_NAME] = (0, site.links, site.chain)
    return found


def _holds_head(head: Head, key: int, links: int, chain: str) -> bool:
    if links <= head.links:
        return (links, chain) == (head.links, head.chain)
    if not key:
        tables = [kind._base_manager.filter(**where) for kind, where in SITE.items()]
    else:
        tables = [kind._base_manager.filter(**{owner: key}) for kind, owner in OWNED.items()]
    return any(rows.filter(link=head.links, chain=head.chain).exists() for rows in tables)


def _count_links(name: str) -> int:
    found = _find_present([name]).get(name)
    return found[1] if found else 0


def _format_time(mark: AnchorMark) -> str:
    return f"at {mark.written_at:%Y-%m-%d %H:%M}" if mark.written_at else "once"


def _pack_chain(chain: str) -> bytes:
    """Pack a chain value into 32 bytes; any other text stays unchanged."""
    try:
        return bytes.fromhex(chain.removeprefix("sha256:"))
    except ValueError:
        return chain.encode()


def _unpack_chain(chain: bytes) -> str:
    return f"sha256:{chain.hex()}" if len(chain) == 32 else chain.decode()
