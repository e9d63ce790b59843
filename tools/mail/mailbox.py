"""The content of a folder: the uids a query matches, one line of each, one full message."""

from __future__ import annotations

from dataclasses import dataclass

from tools.framework.errors import InputError
from tools.mail.accounts import Account
from tools.mail.errors import MessageMissingError
from tools.mail.folders import examine_folder
from tools.mail.headers import parse_header
from tools.mail.hidden import strip_invisible
from tools.mail.imap import Imap
from tools.mail.imap_strings import Literal, Word, encode_atom, encode_date, encode_string
from tools.mail.message import Mail, read_message
from tools.mail.replies import Atom, Value, decode_value, parse_number, parse_pairs

#: How many of the newest messages of a folder are searched.
MOST_SEARCHED = 50_000
BIGGEST_UID = 2**32 - 1
FIELDS = "BODY.PEEK[HEADER.FIELDS (FROM SUBJECT DATE)]<0.8192>"
SECTION = "BODY[HEADER.FIELDS (FROM SUBJECT DATE)]"


@dataclass(frozen=True, slots=True)
class Query:
    sender: str = ""
    recipient: str = ""
    subject: str = ""
    text: str = ""
    since: str = ""
    before: str = ""
    is_unread: bool = False

    def words(self) -> list[Word]:
        """Return the query as encoded IMAP search keys."""
        words: list[Word] = []
        for key, value, what in (
            (b"FROM", self.sender, "The sender"),
            (b"TO", self.recipient, "The recipient"),
            (b"SUBJECT", self.subject, "The subject"),
            (b"TEXT", self.text, "The text"),
        ):
            if value:
                words += [key, encode_string(value, what)]
        if self.since:
            words += [b"SINCE", encode_date(self.since, "since")]
        if self.before:
            words += [b"BEFORE", encode_date(self.before, "before")]
        return [*words, b"UNSEEN"] if self.is_unread else words


@dataclass(frozen=True, slots=True)
class Hits:
    #: the newest first
    uids: list[int]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Fetched:
    account: str
    folder: str
    size: int
    mail: Mail
    #: the bytes of the message that were read
    data: bytes


async def search_uids(imap: Imap, folder: str, query: Query) -> Hits:
    """Search a folder; of a very large one only the newest messages."""
    keys = query.words()
    count = await examine_folder(imap, folder)
    if not count:
        return Hits([], [])
    notes = []
    words: list[Word] = [b"UID SEARCH"]
    if any(isinstance(word, Literal) for word in keys):
        words.append(b"CHARSET UTF-8")
    words.append(encode_atom(f"{max(1, count - MOST_SEARCHED + 1)}:*"))
    if count > MOST_SEARCHED:
        notes.append(f"[only the newest {MOST_SEARCHED:,} of {count:,} mails were searched]")
    uids: set[int] = set()
    for answer in await imap.command(*words, *keys):
        if answer[:1] == [Atom(b"SEARCH")]:
            uids |= {parse_number(each) for each in answer[1:]}
    return Hits(sorted(uids - {0}, reverse=True), notes)


async def fetch_summaries(imap: Imap, uids: list[int]) -> list[str]:
    """Return one line of each message, in the order of the uids."""
    if not uids:
        return []
    chosen = encode_atom(",".join(map(str, uids)))
    items_wanted = f"(UID FLAGS RFC822.SIZE INTERNALDATE {FIELDS})".encode("ascii")
    found: dict[int, str] = {}
    for answer in await imap.command(b"UID FETCH", chosen, items_wanted):
        match answer:
            case [_, Atom(b"FETCH"), items]:
                facts = parse_pairs(items)
                found[parse_number(facts.get("UID"))] = _format_summary(facts)
    return [found[uid] for uid in uids if uid in found]


def _format_summary(facts: dict[str, Value]) -> str:
    data = facts.get(SECTION, b"")
    head, _ = parse_header(data if isinstance(data, bytes) else b"", 0)
    flags = facts.get("FLAGS")
    seen = isinstance(flags, list) and any(decode_value(each).lower() == "\\seen" for each in flags)
    when = head.text("date") or decode_value(facts.get("INTERNALDATE", b""))
    parts = [
        strip_invisible(text)[0][:200] for text in (when, head.text("from"), head.text("subject"))
    ]
    mark = "" if seen else " (unread)"
    size = parse_number(facts.get("RFC822.SIZE"))
    return f"uid {parse_number(facts.get('UID'))}{mark} | {' | '.join(parts)} | {size:,} bytes"


async def fetch_message(imap: Imap, account: Account, folder: str, uid: int, most: int) -> Fetched:
    """Fetch and parse one message, at most `most` bytes of it."""
    if not 0 < uid <= BIGGEST_UID:
        raise InputError("uid must be a number that search_mail gave.")
    name = folder or account.folder
    await examine_folder(imap, name)
    items_wanted = f"(UID RFC822.SIZE BODY.PEEK[]<0.{most}>)".encode("ascii")
    for answer in await imap.command(b"UID FETCH", encode_atom(str(uid)), items_wanted):
        match answer:
            case [_, Atom(b"FETCH"), items]:
                facts = parse_pairs(items)
                data = facts.get("BODY[]")
                if parse_number(facts.get("UID")) == uid and isinstance(data, bytes):
                    size = parse_number(facts.get("RFC822.SIZE"))
                    mail = await read_message(data, max(size, len(data)))
                    return Fetched(account.name, name, size, mail, data)
    raise MessageMissingError(f"There is no mail with uid {uid} in {name}; search_mail finds some.")
