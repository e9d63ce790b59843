"""The catalogues keep to the voice and the terms of conversations/locale/README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings as site

from tests.web.test_catalogues import LANGUAGES, read_catalogue

PAGE = Path(site.BASE_DIR) / "conversations" / "locale" / "README.md"
COLUMNS = {"de": 1, "fr": 2, "es": 3}
#: Where values are put, whose names are in English.
PLACES = re.compile(r"%\(\w+\)[sd]")
#: What people would write to the model themselves.
EXAMPLES = ("List the files in my workspace", "Write a file ideas.md with")
#: What the code and the API call a chat; not names in quotation marks and of files.
OF_CODE = re.compile(r"“[^”]*”|\bconversations\.json|(\bconversations?\b)", re.IGNORECASE)
#: Texts of tables, which stand in migrations too.
OF_TABLES = {
    "Whether the API compacts conversations with it when it is asked to.",
    "allowed in this conversation",
}
#: Words with which a text addresses somebody as a friend.
FAMILIAR = {
    "de": re.compile(r"\b(?:du|dich|dir|deine?[mnrs]?)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(?:tu|toi|tes|ta)\b", re.IGNORECASE),
    "es": re.compile(r"\b(?:tú|te|ti|tus?)\b", re.IGNORECASE),
}


def read_terms() -> list[list[str]]:
    """Return the rows of the page's table of terms."""
    _before, _head, table = PAGE.read_text(encoding="utf-8").partition("## Terms")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_thing_has_one_name(language: str) -> None:
    catalogue, wrong = read_catalogue(language), []
    terms = read_terms()
    assert len(terms) > 10
    for row in terms:
        named = re.compile(rf"\b{row[0]}(?:e?s)?\b", re.IGNORECASE)
        forms = [form.strip().casefold() for form in row[COLUMNS[language]].split(",")]
        for key, texts in catalogue.items():
            if named.search(PLACES.sub("", key)):
                wrong += [
                    (row[0], text)
                    for text in texts
                    if not any(form in text.casefold() for form in forms)
                ]
    assert wrong == []


def test_pages_say_chat() -> None:
    texts = {key for key in read_catalogue("de") if any(OF_CODE.findall(key))}
    assert texts == OF_TABLES


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_are_addressed_politely(language: str) -> None:
    familiar = [
        text
        for key, texts in read_catalogue(language).items()
        for text in texts
        if FAMILIAR[language].search(text) and not key.startswith(EXAMPLES)
    ]
    assert familiar == []


def test_french_signs_stay_with_their_words() -> None:
    texts = [text for each in read_catalogue("fr").values() for text in each]
    assert [text for text in texts if re.search(r" [:;?!»]|« |\w'\w", text)] == []


def test_german_and_spanish_have_their_own_signs() -> None:
    german = [text for each in read_catalogue("de").values() for text in each]
    assert [text for text in german if text.count("„") != text.count("“")] == []
    spanish = [text.replace("(?)", "") for each in read_catalogue("es").values() for text in each]
    assert [text for text in spanish if text.count("¿") != text.count("?")] == []
    assert not [text for text in (*german, *spanish) if re.search(r"\s[:;?!](?:\s|$)", text)]
