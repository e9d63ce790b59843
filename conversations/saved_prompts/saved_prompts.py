"""Saved prompts: listed, found, added, changed, copied and deleted; a person's own by them alone.

A list does not load the texts, which can be long, but how they begin. It is searched here and not
by the database, which knows no other alphabet's capitals (SQLite).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.utils.text import slugify

from conversations.db import transact
from conversations.log.legal_holds import is_owner_held, is_person_held
from conversations.models import SavedPrompt, SitePrompt, User
from conversations.models.saved_prompts import MOST_COMMAND

MOST_PROMPTS, MOST_TEXT = 200, 20_000
#: Characters of a text that a list shows.
_EXCERPT = 200


class PromptRefused(Exception):
    """A prompt is not stored or not deleted; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Wording:
    """What a person writes of a prompt; without a command it gets one from its title."""

    title: str
    command: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A prompt in a list."""

    id: UUID
    title: str
    command: str
    excerpt: str
    is_of_site: bool = False


@dataclass(frozen=True, slots=True)
class PromptList:
    """A person's own prompts, and those of the site that they may use."""

    own: tuple[PromptRow, ...]
    of_site: tuple[PromptRow, ...]

    @property
    def all(self) -> tuple[PromptRow, ...]:
        return self.own + self.of_site


def list_prompts(user: User, asked: str = "") -> PromptList:
    """Return the prompts whose title or command has all the words; two queries, however many."""
    words = asked.casefold().replace("/", " ").split()
    own = SavedPrompt.objects.filter(owner=user)
    return PromptList(
        tuple(_list_rows(own, words)), tuple(_list_rows(_of_site(user), words, is_of_site=True))
    )


def _list_rows(
    rows: QuerySet[Any], words: list[str], *, is_of_site: bool = False
) -> Iterator[PromptRow]:
    found = rows.annotate(excerpt=Left("text", _EXCERPT))
    values = found.values_list("public_id", "title", "command", "excerpt")
    read = (
        PromptRow(public_id, title, command, excerpt, is_of_site)
        for public_id, title, command, excerpt in values
    )
    fitting = (row for row in read if all(word in _searched(row) for word in words))
    # A command that begins with what is typed is what is meant.
    start = "-".join(words)
    yield from sorted(
        fitting, key=lambda row: (not row.command.startswith(start), row.title.casefold())
    )


def _searched(row: PromptRow) -> str:
    return f"{row.title} {row.command}".casefold()


def _of_site(user: User) -> QuerySet[SitePrompt]:
    return SitePrompt.objects.filter(Q(groups=None) | Q(groups__user=user)).distinct()


def find_own_prompt(user: User, public_id: UUID) -> SavedPrompt | None:
    return SavedPrompt.objects.filter(owner=user, public_id=public_id).first()


def find_prompt(user: User, public_id: UUID) -> SavedPrompt | SitePrompt | None:
    """Return a prompt that the person may use: their own, or one of the site."""
    own = find_own_prompt(user, public_id)
    return own if own is not None else _of_site(user).filter(public_id=public_id).first()


@transact
def add_prompt(*, owner_id: int, wording: Wording) -> SavedPrompt:
    """Store a new prompt; raises PromptRefused."""
    # The lock on the person's row serialises concurrent additions.
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    taken = set(SavedPrompt.objects.filter(owner_id=owner_id).values_list("command", flat=True))
    if len(taken) >= MOST_PROMPTS:
        raise PromptRefused("full")
    if wording.command in taken:
        raise PromptRefused("taken")
    command = wording.command or _find_free(slugify(wording.title), taken)
    return SavedPrompt.objects.create(
        owner_id=owner_id, title=wording.title, command=command, text=wording.text
    )


@transact
def change_prompt(*, owner_id: int, public_id: UUID, wording: Wording) -> None:
    """Change a prompt that exists; raises PromptRefused."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    if is_person_held(owner_id):
        raise PromptRefused("held")
    others = SavedPrompt.objects.filter(owner_id=owner_id).exclude(public_id=public_id)
    taken = set(others.values_list("command", flat=True))
    if wording.command in taken:
        raise PromptRefused("taken")
    row = SavedPrompt.objects.get(owner_id=owner_id, public_id=public_id)
    row.title, row.text = wording.title, wording.text
    row.command = wording.command or _find_free(slugify(wording.title), taken)
    row.save(update_fields=["title", "command", "text", "changed_at"])


@transact
def copy_prompt(*, user: User, prompt: SavedPrompt | SitePrompt) -> SavedPrompt:
    """Copy a prompt to the person's own, under a command that is free; raises PromptRefused."""
    taken = set(SavedPrompt.objects.filter(owner=user).values_list("command", flat=True))
    command = _find_free(prompt.command, taken)
    wording = Wording(title=prompt.title, command=command, text=prompt.text)
    return add_prompt(owner_id=user.pk, wording=wording)


@transact
def import_prompts(*, owner_id: int, wordings: Sequence[Wording]) -> list[str]:
    """Add the prompts that the person does not have; return what became of each.

    That is `added`, `again` (one with this title and text is there) or `full`. A command that is
    taken gets a number.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    present = SavedPrompt.objects.filter(owner_id=owner_id)
    had = {(row.title, row.text) for row in present.only("title", "text")}
    taken = set(present.values_list("command", flat=True))
    ends, rows = [], []
    for wording in wordings:
        if (wording.title, wording.text) in had:
            ends.append("again")
        elif len(taken) >= MOST_PROMPTS:
            ends.append("full")
        else:
            command = _find_free(slugify(wording.command or wording.title), taken)
            taken.add(command)
            had.add((wording.title, wording.text))
            rows.append(
                SavedPrompt(
                    owner_id=owner_id, title=wording.title, command=command, text=wording.text
                )
            )
            ends.append("added")
    SavedPrompt.objects.bulk_create(rows)
    return ends


def _find_free(wanted: str, taken: Iterable[str]) -> str:
    """Return a command like the wanted one that is not taken."""
    base = re.sub(r"[-_]+", "-", wanted)[:MOST_COMMAND].strip("-") or "prompt"
    number, found, taken = 1, base, set(taken)
    while found in taken:
        number += 1
        end = f"-{number}"
        found = base[: MOST_COMMAND - len(end)].rstrip("-") + end
    return found


@transact
def delete_prompt(*, owner_id: int, public_id: UUID) -> bool:
    """Delete a prompt; return whether it existed. Raises PromptRefused."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    if is_person_held(owner_id):
        raise PromptRefused("held")
    count, _ = SavedPrompt.objects.filter(owner_id=owner_id, public_id=public_id).delete()
    return count > 0


@transact
def delete_prompts(*, owner_id: int) -> None:
    """Delete all prompts of a person who is not held, as part of erasing their data."""
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
    SavedPrompt.objects.filter(~is_owner_held(), owner_id=owner_id).delete()


def export_prompts(owner_id: int) -> list[dict[str, str]]:
    """Return a person's own prompts, for their archive."""
    rows = SavedPrompt.objects.filter(owner_id=owner_id).order_by("command")
    return [{"title": row.title, "command": row.command, "text": row.text} for row in rows]
