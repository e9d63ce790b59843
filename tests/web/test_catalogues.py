"""The catalogues of languages: complete, current, with the same places for values."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as site
from django.template import engines
from django.template.base import Node, TextNode
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.test import Client
from django.utils import translation
from django.utils.translation import trim_whitespace
from django.utils.translation.trans_real import CONTEXT_SEPARATOR

ROOT = Path(site.BASE_DIR)
LANGUAGES = ("de", "es", "fr")
CALLS = {
    "_": 1, "gettext": 1, "gettext_lazy": 1, "gettext_noop": 1, "ngettext": 2, "ngettext_lazy": 2,
}  # fmt: skip
#: What is written alike in every language, and in one.
_ALIKE = {
    "%(minutes)d min %(seconds)d s", "%(number)d min", "%(number)d ms", "Original",
    "STARTTLS", "TLS"
}  # fmt: skip
ALIKE = {
    "de": _ALIKE | {
        "Budget", "Chat", "Chats", "Limit", "Minute", "Name", "Normal", "Offline",
        "Passkey %(number)d", "Passkeys", "Person", "Port", "Site", "Text", "in %%s s",
        "in %(time)s"
    },
    "es": _ALIKE | {
        "%(n)s bytes", "%(n)s chat", "%(n)s tokens", "%(number)s tokens", "%(tokens)s tokens",
        "Bytes", "Chat", "Chats", "Error", "Normal", "Tokens", "bytes", "chat", "chat %(number)s",
        "chats", "error", "no", "tokens", "~%(n)s tokens"
    },
    "fr": _ALIKE | {
        "%(count)d minute", "%(count)s image", "%(count)s images",
        "%(n)s message", "%(n)s page",
        "Arguments", "Branches", "Budget",
        "Corrections", "Document",
        "Document %(number)d", "Effort", "Image", "Invitation", "Message", "Messages",
        "Minute",
        "Pages", "Port", "Site", "Sources", "Transformations", "Versions", "action", "budget",
        "budgets", "effort", "invitation", "invitations",
        "messages", "page %(number)d", "source", "transformation", "transformations"
    },
}  # fmt: skip
_PLACES = re.compile(r"%%s|%\(\w+\)[sd]|%[sd]|</?\w+[^>]*>")
_IN_FILTER = re.compile(r'_\("([^"]+)"\)')
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?(".*")')


def read_source(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of a module, with their plural or an empty text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        if count := CALLS.get(node.func.id):
            found = [text for text in texts[:count] if isinstance(text, str)]
            if len(found) == count:
                yield found[0], "" if count == 1 else found[1]


def read_nodes(node: object) -> Iterator[tuple[str, str]]:
    """Yield the messages of a node of a template and of those inside it."""
    if isinstance(node, TranslateNode):
        literal = str(node.filter_expression.var.literal).replace("%", "%%")
        context = node.message_context
        before = f"{context.var}{CONTEXT_SEPARATOR}" if context else ""
        yield before + literal, ""
    if isinstance(node, BlockTranslateNode):
        texts = [node.render_token_list(part)[0] for part in (node.singular, node.plural) if part]
        one, many = (*(trim_whitespace(t) if node.trimmed else t for t in texts), "")[:2]
        yield one, many
    for name in (*getattr(node, "child_nodelists", ()), "nodelist"):
        for inner in getattr(node, name, None) or ():
            if isinstance(inner, Node) and not isinstance(inner, TextNode):
                yield from read_nodes(inner)


def read_messages() -> dict[str, str]:
    """Return every message of the project with its plural or an empty text."""
    found: dict[str, str] = {}
    for top in ("agentweb", "conversations", "tools"):
        for path in (ROOT / top).rglob("*.py"):
            for one, many in read_source(path):
                found[one] = many or found.get(one, "")
    (engine,) = [each for each in engines.all() if hasattr(each, "engine")]
    for path in sorted((ROOT / "templates").rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            found |= dict.fromkeys(_IN_FILTER.findall(text), "")
            for node in engine.from_string(text).template.nodelist:
                for one, many in read_nodes(node):
                    found[one] = many or found.get(one, "")
    return found


def read_catalogue(language: str) -> dict[str, tuple[str, ...]]:
    """Return the translations of a catalogue's source; each message has one or two."""
    path = ROOT / "conversations" / "locale" / language / "LC_MESSAGES" / "django.po"
    found: dict[str, tuple[str, ...]] = {}
    text = path.read_text(encoding="utf-8")
    assert "fuzzy" not in text
    for entry in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in entry.splitlines():
            if part := _LINE.fullmatch(line):
                name = part[1] or name
                fields[name] = fields.get(name, "") + ast.literal_eval(part[2])
        if fields.get("msgid"):
            context = fields.get("msgctxt")
            key = f"{context}{CONTEXT_SEPARATOR}" if context else ""
            found[key + fields["msgid"]] = tuple(
                value for name, value in fields.items() if name.startswith("msgstr")
            )
    return found


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    return read_messages()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_has_every_message_of_the_project_and_no_other(
    language: str, messages: dict[str, str]
) -> None:
    catalogue = read_catalogue(language)
    assert len(messages) > 1_000
    assert sorted(set(messages) - set(catalogue)) == []
    assert sorted(set(catalogue) - set(messages)) == []
    assert [key for key, texts in catalogue.items() if not all(texts)] == []
    assert [key for key, many in messages.items() if len(catalogue[key]) != 1 + bool(many)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_message_is_left_as_it_was_but_those_that_are_alike(language: str) -> None:
    catalogue = read_catalogue(language)
    alike = {
        key
        for key, texts in catalogue.items()
        if key.rpartition(CONTEXT_SEPARATOR)[2] == texts[0] and re.search(r"[^\W\d_]{2}", key)
    }
    places = {key for key in alike if not re.search(r"[^\W\d_]{2}", _PLACES.sub("", key))}
    assert alike - places == ALIKE[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_have_the_same_places_and_tags(
    language: str, messages: dict[str, str]
) -> None:
    for key, texts in read_catalogue(language).items():
        forms = [key, messages[key]] if messages[key] else [key]
        wanted = {place for form in forms for place in _PLACES.findall(form)}
        assert {place for text in texts for place in _PLACES.findall(text)} == wanted, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_served_is_what_was_translated(language: str) -> None:
    folder = ROOT / "conversations" / "locale" / language / "LC_MESSAGES"
    with (folder / "django.mo").open("rb") as stream:
        served = gettext.GNUTranslations(stream)
    for key, texts in read_catalogue(language).items():
        if len(texts) == 1:
            assert served.gettext(key) == texts[0]
        else:
            assert (served.ngettext(key, key, 1), served.ngettext(key, key, 2)) == texts


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "language", "word"),
    [
        ("de-AT,en;q=0.5", "de", "Anmelden"),
        ("fr", "fr", "Se connecter"),
        ("es-MX", "es", "Iniciar sesión"),
    ],
)
def test_a_visitor_reads_the_language_of_the_browser(asked: str, language: str, word: str) -> None:
    with translation.override(None):  # the client's request leaves its language behind
        page = Client().get("/accounts/login/", headers={"Accept-Language": asked}, follow=True)
    assert f'<html lang="{language}"' in page.content.decode()
    assert word in page.content.decode()
