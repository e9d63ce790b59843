"""Other languages: every text of a page can be translated, and pages support right-to-left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.test import Client
from django.utils.translation import trans_real

from conversations.accounts.people import save_preferences
from conversations.models import ApiModel
from conversations.rendering.model_names import name_model
from tests.support import stored_turns
from tools.framework.registry import TOOLS

ROOT = Path(site.BASE_DIR) / "templates"
TEMPLATES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.html"))
#: Names, formats and keys that are the same in every language.
NAMES = {"agentweb", "Markdown", "HTML", "JSON", "CSV", "UTC", "Ctrl", "K", "ChatGPT", "k", "M"}
_TRANSLATED = re.compile(
    r"{%\s*blocktrans(?:late)?\b.*?%}.*?{%\s*endblocktrans(?:late)?\s*%}"
    r"|{%\s*comment\b.*?%}.*?{%\s*endcomment\s*%}|{#.*?#}"
    r"|{%\s*block (?:body|main)_\w+\s*%}.*?{%\s*endblock\s*%}",
    re.DOTALL,
)
_TAGS = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
_SPOKEN = {"title", "placeholder", "aria-label", "alt"}
_SILENT = {"style", "script", "svg", "kbd", "code", "pre", "template"}
_WORD = re.compile(r"[^\W\d_][\w.'-]*")


class Spoken(HTMLParser):
    """Collects the text of a page and the attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        self.found += [value or "" for name, value in attrs if name in _SPOKEN]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)


def words(html: str) -> list[str]:
    spoken = Spoken()
    spoken.feed(html)
    spoken.close()
    found = (word for text in spoken.found for word in _WORD.findall(text))
    return [word for word in found if word not in NAMES]


def fixed(source: str) -> list[str]:
    """Return the words of a template that cannot be translated."""
    return words(_TAGS.sub(" ", _TRANSLATED.sub(" ", source)))


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_word_of_a_template_can_be_translated(name: str) -> None:
    assert fixed((ROOT / name).read_text(encoding="utf-8")) == []


def test_what_is_not_translated_is_found() -> None:
    source = '<p title="Close">{% translate "Fine" %} Stop</p><kbd>x</kbd>{# Note #}'
    assert fixed(source) == ["Close", "Stop"]
    assert fixed("{% blocktranslate %}Fine {{ x }}{% endblocktranslate %}{{ y }} · agentweb") == []


#: A right-to-left language that no other test speaks: what templates say in one is kept.
MARKED = "ur"


class Marked:
    """A language in which every message is put in brackets."""

    def gettext(self, message: str) -> str:
        return f"⟦{message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}⟧"

    def ngettext(self, one: str, many: str, number: int) -> str:
        return f"⟦{one if number == 1 else many}⟧"

    def to_language(self) -> str:
        return MARKED

    def language(self) -> str:
        return MARKED


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """Offer that language."""
    settings.LANGUAGES = [("en", "English"), (MARKED, "xxx")]
    monkeypatch.setitem(trans_real._translations, MARKED, Marked())
    yield
    trans_real.activate("en")


def unmarked(html: str) -> list[str]:
    while (inner := re.sub(r"⟦[^⟦⟧]*⟧", " ", html)) != html:
        html = inner
    return words(html)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "page",
    [
        "/c/new/", "/c/list/", "/trash/", "/search/", "/settings/appearance/", "/settings/chat/",
        "/settings/shortcuts/", "/settings/account/", "/settings/data/", "/settings/context/",
        "/settings/mail/", "/settings/prompts/", "/settings/prompts/new/", "/settings/security/",
        "/files/", "/files/attached/", "/usage/",
        "chat", "chat settings/", "chat tools/", "chat inspect/", "chat compact/preview/",
    ],
)  # fmt: skip
def test_a_page_in_another_language_has_no_word_of_this_one(page: str, marked: None) -> None:
    played = stored_turns.played("ada", title="xxx", value="xxx", result="xxx " * 900)
    save_preferences(user_id=played.user.pk, changes={"language": MARKED})
    client = Client()
    client.force_login(played.user)
    url = page.replace("chat", f"/c/{played.conversation.public_id}/", 1).replace(" ", "")
    url = url if page.startswith("chat") else page
    html = client.get(url).content.decode()
    assert f'<html lang="{MARKED}" dir="rtl"' in html
    ids = ApiModel.objects.values_list("pk", flat=True)
    known = {"ada", "xxx", "English", *ids, *(name_model(key).split()[0] for key in ids)}
    known |= {word for tool in TOOLS.values() for word in _WORD.findall(tool.description)}
    # Messages, and the notes of the log, stay in the language they were made in.
    known |= {*TOOLS, *_WORD.findall("Let me look. The order is 4711-ÄÖ.")}
    known |= {"head_tail", "json", "keep", "read_only", "verbatim"}
    notes = played.conversation.transformations.values_list("note", flat=True)
    known |= {word for note in notes for word in _WORD.findall(note)}
    assert [word for word in unmarked(html) if word not in known] == []
