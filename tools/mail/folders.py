"""The folders of an account: listed, found by their use, opened for reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tools.mail.errors import MailRefusedError
from tools.mail.imap import Imap
from tools.mail.imap_strings import decode_utf7, encode_folder, encode_string
from tools.mail.replies import Atom, decode_value, parse_number

MOST_FOLDERS = 500
Use = Literal["drafts", "sent", "trash"]
#: Names in lower case, for servers that do not flag the use of a folder.
CALLED: dict[Use, tuple[str, ...]] = {
    "drafts": ("drafts", "entwürfe", "brouillons", "borradores"),
    "sent": ("sent", "sent items", "sent messages", "gesendet", "gesendete elemente"),
    "trash": ("trash", "deleted items", "deleted messages", "papierkorb", "corbeille", "papelera"),
}


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    flags: frozenset[str]
    separator: str

    @property
    def is_selectable(self) -> bool:
        return not self.flags & {"\\noselect", "\\nonexistent"}


async def list_folders(imap: Imap) -> list[Folder]:
    """List the folders with decoded names."""
    found = []
    for answer in await imap.command(b"LIST", b'""', b'"*"'):
        match answer:
            case [Atom(b"LIST"), list(flags), separator, name]:
                lowered = frozenset(decode_value(each).lower() for each in flags)
                found.append(
                    Folder(decode_utf7(decode_value(name)), lowered, decode_value(separator))
                )
    return sorted(found, key=lambda each: (each.name.upper() != "INBOX", each.name.lower()))


def find_folder(folders: Sequence[Folder], use: Use) -> str:
    """Return the name of the folder with this use; "" if there is none."""
    found = [each for each in folders if each.is_selectable]
    for each in found:
        if f"\\{use}" in each.flags:
            return each.name
    for each in found:
        if each.name.lower().rpartition((each.separator or "/").lower())[2] in CALLED[use]:
            return each.name
    return ""


async def find_or_create_folder(imap: Imap, use: Use) -> str:
    """Return the name of the folder with this use; create one if there is none."""
    name = find_folder(await list_folders(imap), use)
    if not name:
        name = use.capitalize()
        await imap.command(b"CREATE", encode_folder(name))
    return name


async def find_sent_or_deleted(imap: Imap, message_id: str) -> str:
    """Return the folder of sent or deleted mail that has a message of this id; "" if neither."""
    folders = await list_folders(imap)
    for use in ("sent", "trash"):
        name = find_folder(folders, use)
        if name and await has_message(imap, name, message_id):
            return name
    return ""


async def examine_folder(imap: Imap, name: str) -> int:
    """Open a folder for reading; return how many messages it has."""
    count = 0
    try:
        answers = await imap.command(b"EXAMINE", encode_folder(name))
    except MailRefusedError as error:
        raise MailRefusedError(
            f"The folder {name[:80]!r} could not be opened; list_mail_folders shows what there is."
        ) from error
    for answer in answers:
        match answer:
            case [number, Atom(b"EXISTS")]:
                count = parse_number(number)
    return count


async def has_message(imap: Imap, name: str, message_id: str) -> bool:
    """Tell whether a folder has a message of this id."""
    await examine_folder(imap, name)
    wanted = encode_string(message_id, "The Message-ID")
    for answer in await imap.command(b"UID SEARCH HEADER Message-ID", wanted):
        if answer[:1] == [Atom(b"SEARCH")] and len(answer) > 1:
            return True
    return False
