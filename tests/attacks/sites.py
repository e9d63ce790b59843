"""Every URL of the site by introspection, with real ids of one person's things or with nobody's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.urls import URLResolver, get_resolver
from django.utils import timezone

from conversations.accounts.reading_log import record_reading
from conversations.library.conversations import delete_conversation
from conversations.models import (
    Attachment,
    Conversation,
    Folder,
    MailAccount,
    SavedPrompt,
    User,
    WorkspaceFile,
)
from conversations.models.workspace import FileState
from tests.support import people_and_turns, stored_turns
from tests.web import canary

NOBODYS = "00000000-0000-4000-8000-000000000000"
#: What stands in an address whoever asks.
PLAIN = {
    "<int:number>": "1", "<int:n>": "1", "<int:index>": "0", "<int:step>": "1", "<int:a>": "1",
    "<int:b>": "3", "<str:id>": "toolu_1", "<str:token>": "token", "<str:form>": "md",
    "<str:name>": "users", "<str:uidb64>": "MQ", "<int:pk>": "987654321",
    "<str:provider_id>": "none", "<path:rest>": "nothing",
}  # fmt: skip
ODD = {
    r"^(?P<app_label>conversations|admin|auth)/$": "conversations/",
    r"(?P<url>.*)$": "nothing",
}


@dataclass(frozen=True, slots=True)
class View:
    route: str
    name: str

    @property
    def is_admin(self) -> bool:
        return self.route.startswith("admin/")

    @property
    def is_api(self) -> bool:
        """Whether a token counts there and a session does not."""
        return self.route.startswith("api/")

    @property
    def is_of_somebody(self) -> bool:
        return not self.is_admin and "<uuid:" in self.route


@dataclass(frozen=True, slots=True)
class World:
    """One person with something of every kind, a word planted in all of it."""

    user: User
    conversation: Conversation
    trashed: Conversation
    values: dict[str, str]


def views(patterns: Any = None, before: str = "") -> Iterator[View]:
    for each in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from views(each.url_patterns, route)
        else:
            yield View(route, str(each.name))


def quiet_world(name: str = "ada") -> World:
    """One whose record is as it was made: what is planted is damage to the engine."""
    place = stored_turns.played(name)
    seq = place.conversation.transformations.get(kind="compaction").seq
    names = (
        "<uuid:account_id>", "<uuid:file_id>", "<uuid:client_id>", "<uuid:batch>",
        "<uuid:prompt_id>", "<uuid:folder_id>",
    )  # fmt: skip
    values = dict.fromkeys(names, NOBODYS)
    found = values | {"<int:seq>": str(seq), "answers/<int:seq>": "2"}
    return World(place.user, place.conversation, place.conversation, found)


def world(name: str = "ada") -> World:
    place, other = stored_turns.played(name), stored_turns.played(name)
    delete_conversation(conversation=other.conversation)
    canary.plant(place.conversation)
    record_reading(reader=place.user, conversation=place.conversation, what="its messages")
    other.conversation.refresh_from_db()
    WorkspaceFile.objects.update(state=FileState.LIVE)
    thrown = WorkspaceFile.objects.create(
        owner=place.user, path="thrown", object=uuid4().hex, bytes=1, digest="x", batch=uuid4(),
        changed_at=timezone.now(), state=FileState.TRASH,
    )  # fmt: skip
    mine = {"owner": place.user}
    waiting = place.conversation.queued_prompts.get()
    files = WorkspaceFile.objects.filter(**mine, state=FileState.LIVE)
    values = {
        "<uuid:account_id>": MailAccount.objects.filter(**mine)[0].public_id,
        "<uuid:prompt_id>": SavedPrompt.objects.filter(**mine)[0].public_id,
        "<uuid:folder_id>": Folder.objects.filter(**mine)[0].public_id,
        "<uuid:file_id>": Attachment.objects.filter(**mine)[0].public_id,
        "own/<uuid:file_id>": files[0].public_id,
        "<uuid:client_id>": waiting.client_id,
        "<uuid:batch>": thrown.batch,
        "<int:seq>": place.conversation.transformations.get(kind="compaction").seq,
        "answers/<int:seq>": 2,
    }  # fmt: skip
    found = {part: str(value) for part, value in values.items()}
    return World(place.user, place.conversation, other.conversation, found)


def address(view: View, world: World, *, is_nobodys: bool = False) -> str:
    """Give the address of a view for what the world's person has, or for what nobody has."""
    route = view.route
    for regex, word in ODD.items():
        route = route.replace(regex, word)
    chat = world.trashed if route.startswith("trash/") else world.conversation
    values = {"<uuid:public_id>": str(chat.public_id)} | world.values
    if is_nobodys:
        values = {key: NOBODYS if "<uuid:" in key else value for key, value in values.items()}
    if view.is_admin:
        values |= rows_of(route, is_nobodys=is_nobodys)
    # The longer name first: it is the more particular one.
    values = PLAIN | values
    for part in sorted(values, key=len, reverse=True):
        route = route.replace(part, part.partition("<")[0] + values[part])
    assert "<" not in route, f"a new kind of URL: say in sites.py what stands in {route}"
    return f"/{route}"


def choose_methods(methods: tuple[str, ...], turn: int) -> tuple[str, ...]:
    """Return the first three, those of pages, and by turns one of the others."""
    return (*methods[:3], methods[3 + turn % (len(methods) - 3)])


def rows_of(route: str, *, is_nobodys: bool) -> dict[str, str]:
    """Name a row of the table that a page of the admin is about."""
    parts = route.split("/")
    tables = {
        f"{kind._meta.app_label}/{kind._meta.model_name}": kind for kind in admin.site._registry
    }
    kind = tables.get("/".join(parts[1:3]), LogEntry)
    row = None if is_nobodys else kind._default_manager.order_by("pk").first()
    key = str(row.pk) if row is not None else "987654321"
    return {"<path:object_id>": key, "<id>": key, "<path:content_type_id>": "1"}


def visitor(kind: str) -> User | None:
    """Make one of the kinds of people who look at what is not theirs."""
    match kind:
        case "stranger":
            return None
        case "another":
            return people_and_turns.person("eve")
        case "inactive":
            return people_and_turns.person(
                "gone", is_staff=True, is_superuser=True, is_active=False
            )
        case "staff":
            return people_and_turns.person("bob", is_staff=True)
        case _:
            return people_and_turns.person("root", is_staff=True, is_superuser=True)
