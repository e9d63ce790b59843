"""Template contexts of the library's pages, plain or hostile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.forms import AuthenticationForm

from conversations.accounts.second_factors import Passkey, SecondFactors
from conversations.library.search import ExcerptPiece, SearchPage, SearchResult
from conversations.library.shared_links import OwnLink
from conversations.library.sidebar import Counts
from conversations.saved_prompts.saved_prompts import PromptList, PromptRow
from conversations.transcript.shapes import ConversationRow
from conversations.transfer.uploads import Report
from conversations.web.forms.saved_prompts import PromptForm
from conversations.web.forms.shared_links import ShareForm
from tests.web import samples


@dataclass(frozen=True, slots=True)
class Notice:
    """A Django message as the templates use it."""

    text: str
    extra_tags: str

    def __str__(self) -> str:
        return self.text


def framed(words: str) -> dict[str, Any]:
    notices = [Notice(words, str(samples.ID)), Notice(words, "")]
    return {"sidebar": samples.sidebar(words), "messages": notices, "trash_days": 30}


def row(words: str) -> ConversationRow:
    return ConversationRow(
        str(samples.ID), words, samples.NOW, is_live=True, is_starred=True, erase_at=samples.NOW
    )


def found(words: str) -> SearchPage:
    pieces = (ExcerptPiece(words), ExcerptPiece(words, is_hit=True))
    hits = [
        SearchResult(
            str(samples.ID), pieces, kind, seq, pieces, samples.NOW, is_archived=True, folder=words
        )
        for kind, seq in (("title", 0), ("prompt", 1), ("answer", 2))
    ]
    return SearchPage(tuple(hits), "1-1", is_asked=True)


def searched(words: str = "x") -> dict[str, Any]:
    return framed(words) | {"question": words, "archived": True, "page": found(words)}


def missed(words: str = "x") -> dict[str, Any]:
    return framed(words) | {"question": words, "page": SearchPage(is_asked=True)}


def menu(words: str = "x") -> dict[str, Any]:
    return framed(words) | {"row": row(words), "title": words, "error": words}


def folder(words: str = "x") -> dict[str, Any]:
    own = {"public_id": samples.ID, "name": words, "pk": 1}
    shown = {"folder": own, "folders": [own], "name": words, "error": words, "returning": 2}
    listed = replace(samples.sidebar(words), folder=str(samples.ID), after="1-1")
    return framed(words) | shown | {"row": row(words), "rows": listed, "chosen": 1}


def rows(words: str = "x") -> dict[str, Any]:
    conversation = samples.conversation(words)
    return framed(words) | {"rows": samples.sidebar(words), "conversation": conversation}


def data(words: str = "x") -> dict[str, Any]:
    report = Report(1, 2, 3, [(samples.ID, words)], [(words, words)], words)
    return framed(words) | {
        "counts": Counts(1, 2, 3),
        "most_megabytes": 50,
        "report": report,
        "import_error": words,
        "delete_error": words,
    }


def secured(words: str = "x") -> dict[str, Any]:
    passkey = Passkey(1, words, samples.NOW, samples.NOW)
    return framed(words) | {
        "factors": SecondFactors(True, (passkey,), 1, is_required=True),
        "form": AuthenticationForm(data={"username": words}),
        "options": words,
        "totp_svg_data_uri": "data:image/svg+xml;base64,",
        "can_view_codes": True,
        "unused_codes": [words],
        "next": words,
    }


def prompts(words: str = "x") -> dict[str, Any]:
    row = PromptRow(samples.ID, words, words, words)
    return framed(words) | {"prompts": PromptList((row,), (row,)), "asked": words}


def prompt(words: str = "x") -> dict[str, Any]:
    form = PromptForm({"title": words, "command": words, "text": words + "{{"})
    shown = {"public_id": samples.ID, "title": words, "command": words, "text": words}
    return framed(words) | {"form": form, "prompt_id": samples.ID, "prompt": shown}


def own_link(words: str, *, has_expired: bool = False) -> OwnLink:
    at = samples.NOW
    return OwnLink(
        str(samples.ID), words, words, "people", words, True, at, at, 2, at, has_expired, 1
    )


def sharing(words: str = "x") -> dict[str, Any]:
    link = own_link(words)
    form = ShareForm({"audience": words, "ends": words, "day": words}, link=link, has_later=True)
    return framed(words) | {
        "conversation": samples.conversation(words),
        "link": link,
        "address": f"https://example.org/{words}",
        "form": form,
        "is_done": True,
        "is_on_chat": True,
    }


def links(words: str = "x") -> dict[str, Any]:
    address = f"https://example.org/{words}"
    rows = [(own_link(words), address), (own_link(words, has_expired=True), "")]
    return framed(words) | {"tab": "data", "links": rows}


SHELVES: dict[str, Any] = {
    "conversations/share.html": sharing,
    "conversations/_partials/share.html": sharing,
    "conversations/settings/shared_links.html": links,
    "conversations/search.html": searched,
    "conversations/_partials/found.html": missed,
    "conversations/menu.html": menu,
    "conversations/_partials/menu.html": menu,
    "conversations/folder.html": folder,
    "conversations/folder_new.html": folder,
    "conversations/move.html": folder,
    **{
        f"conversations/_partials/{name}.html": folder
        for name in ("folder_menu", "folder_new", "move")
    },
    "conversations/_partials/folder.html": lambda words="x": (
        {"folder": samples.sidebar(words).folders[0]}
    ),
    "conversations/list.html": rows,
    "conversations/_partials/list_changed.html": rows,
    "conversations/trash.html": lambda words="x": framed(words) | {"rows": [row(words)]},
    "conversations/data.html": data,
    "conversations/settings/prompts.html": prompts,
    "conversations/_partials/prompt_choices.html": lambda words="x": (
        {"rows": prompts(words)["prompts"].all, "count": 2, "asked": words}
    ),
    "conversations/_partials/prompt_text.html": lambda words="x": prompt(words) | {"text": words},
    "conversations/settings/prompt.html": prompt,
    "conversations/settings/prompt_of_site.html": prompt,
    "conversations/settings/email_address.html": lambda words="x": (
        framed(words) | {"form": AuthenticationForm(data={"username": words}), "sends_mail": True}
    ),
    **{
        f"conversations/settings/security{page}.html": secured
        for page in ("", "_app", "_remove", "_passkey", "_codes", "_new_codes", "_identity")
    },
    "conversations/settings/email_confirm.html": lambda words="x": (
        framed(words) | {"address": words}
    ),
}
