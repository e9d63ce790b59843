"""The folders of an account: listed, found by their use, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tools.mail.errors import MailRefusedError
from tools.mail.imap import Imap
from tools.mail.replies import Atom, number_of, text_of
from tools.mail.words import folder, from_utf7, string

MOST_FOLDERS = 500
Use = Literal["drafts", "sent"]
#: What servers without marks call them, in lower case.
CALLED: dict[Use, tuple[str, ...]] = {
    "drafts": ("drafts", "entwürfe", "brouillons", "borradores"),
    "sent": ("sent", "sent items", "sent messages", "gesendet", "gesendete elemente"),
}


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    flags: frozenset[str]
    separator: str

    @property
    def is_selectable(self) -> bool:
        return not self.flags & {"\\noselect", "\\nonexistent"}


async def folders(imap: Imap) -> list[Folder]:
    """List the folders, as people read their names."""
    found = []
    for answer in await imap.command(b"LIST", b'""', b'"*"'):
        match answer:
            case [Atom(b"LIST"), list(flags), separator, name]:
                lowered = frozenset(text_of(each).lower() for each in flags)
                found.append(Folder(from_utf7(text_of(name)), lowered, text_of(separator)))
    return sorted(found, key=lambda each: (each.name.upper() != "INBOX", each.name.lower()))


async def folder_for(imap: Imap, use: Use) -> str:
    """Find the folder of drafts or of sent mail; make one where there is none."""
    found = [each for each in await folders(imap) if each.is_selectable]
    for each in found:
        if f"\\{use}" in each.flags:
            return each.name
    for each in found:
        if each.name.lower().rpartition((each.separator or "/").lower())[2] in CALLED[use]:
            return each.name
    name = use.capitalize()
    await imap.command(b"CREATE", folder(name))
    return name


async def examine(imap: Imap, name: str) -> int:
    """Open a folder for reading; give how many messages it has."""
    count = 0
    try:
        answers = await imap.command(b"EXAMINE", folder(name))
    except MailRefusedError as error:
        raise MailRefusedError(
            f"The folder {name[:80]!r} could not be opened; list_mail_folders shows what there is."
        ) from error
    for answer in answers:
        match answer:
            case [number, Atom(b"EXISTS")]:
                count = number_of(number)
    return count


async def holds(imap: Imap, name: str, message_id: str) -> bool:
    """Say whether a folder has a message of this id."""
    await examine(imap, name)
    wanted = string(message_id, "The Message-ID")
    for answer in await imap.command(b"UID SEARCH HEADER Message-ID", wanted):
        if answer[:1] == [Atom(b"SEARCH")] and len(answer) > 1:
            return True
    return False
