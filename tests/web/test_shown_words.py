"""What is recorded or computed in English is shown in the language of the reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.utils import translation
from django.utils.translation import gettext as _

import conversations.urls  # noqa: F401 - with it, whatever a page may show is known
from conversations.agent.finish import LEFT_OUT
from conversations.budgets.effective import BudgetStatus
from conversations.budgets.refusals import (
    build_limit_refusal,
    build_rate_refusal,
    build_turn_refusal,
)
from conversations.budgets.units import UNITS
from conversations.context.steps.kinds import KINDS
from conversations.context.steps.open_calls import NOTE
from conversations.context.steps.repair import NOTES
from conversations.context.steps.repair_refused import TURN_LEFT_OUT
from conversations.context.translation import RECORDED
from conversations.models import Budget
from conversations.reductions import in_full
from conversations.rendering.numbers import budget_source
from conversations.templatetags.recorded import EARLIER, SHOWN, translated
from tests.budgets.test_effective import rule
from tests.web.test_catalogues import LANGUAGES, ROOT

#: A value of each place of a recorded sentence.
VALUES = {
    "budget": "The daily budget",
    "limit": "$1,234.50",
    "used": "2 turns",
    "amount": "12,345 tokens",
    "whose": "from group Research",
    "members": "everybody",
    "date": "1 December 2026 at 00:00 (Europe/Vienna)",
    "model": "claude-haiku-4-5",
    "kind": "cache read",
    "wait": "5 seconds",
    "count": "1,234",
    "most": "2,345",
    "number": "7",
    "least": "1",
    "field": "low_water_percent",
    "name": "'odd'",
    "names": "classic, adaptive",
    "entry": "12",
    "part": "the request of call 12",
    "path": "/usage/",
    "person": "ada",
    "before": "no limit for this person alone",
    "after": "$1,234.50",
    "reason": "no stop reason",
    "step": "summary",
    "what": "1,234 old tool results",
    "category": "cyber",
    "why": "2,345 tokens exceeded 1,234; it was empty",
}
#: What keeps a sentence, and which of its arguments that is.
RECORDING = {
    "Refused": 1, "ModelFailed": 1, "PolicyError": 1, "PolicyConflict": 1, "SummaryFlaw": 0,
    "Finish": 3,
}  # fmt: skip
#: Words of English sentences.
ENGLISH = r"(?i)\b(the|is|are|this|of|budget of|another|starts|set|for|by)\b"


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_a_budget_comes_from_is_shown_in_the_readers_language(language: str) -> None:
    kinds = [
        rule(1, scope, kind=kind, group="Research")
        for scope in ("site", "group", "user")
        for kind in ("pool", "per_member", "own")
    ]
    sources = {source for one in kinds for source in (one.source, one.own_source)}
    assert len(sources) == 8
    for source in sources:
        with translation.override("en"):
            assert budget_source(source) == source
        with translation.override(language):
            assert budget_source(source) != source
            assert ("Research" in budget_source(source)) == ("Research" in source)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_recorded_sentence_is_shown_in_the_readers_language(language: str) -> None:
    assert len(RECORDED) == len(set(RECORDED)) > 30
    for words in RECORDED:
        text = fill(words, VALUES)
        with translation.override("en"):
            assert translated(text) == text
        with translation.override(language):
            shown = translated(text)
            assert shown != text, words
            assert shown == fill(_(words), {name: show_value(name) for name in VALUES}), words


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_that_an_older_version_recorded_is_shown_as_the_one_of_today(
    language: str,
) -> None:
    with translation.override(language):
        for said, words in EARLIER.items():
            assert translated(fill(said, VALUES)) == translated(fill(words, VALUES)) != said
            assert words in RECORDED


def fill(words: str, values: dict[str, str]) -> str:
    return words % values if "%(" in words else words


def show_value(name: str) -> str:
    show = SHOWN.get(name)
    return show(VALUES[name]) or "" if show else VALUES[name]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("unit", UNITS)
def test_every_refusal_of_a_budget_is_kept_in_english_and_shown_in_the_readers_language(
    unit: str, language: str
) -> None:
    ends = datetime(2026, 12, 1, tzinfo=UTC)
    with translation.override(language):
        for period in Budget.Period.values:
            for one in (rule(1, unit=unit), rule(1, "user", unit=unit, model="claude-haiku-4-5")):
                status = BudgetStatus(replace(one, period=period), ends, ends, 12_345, 9, 1)
                text = build_limit_refusal(status, 1).text
                if status.rule.is_rate:
                    assert not re.search(ENGLISH, translated(text)), translated(text)
                    text = build_rate_refusal(status, ends).text
                assert "1 December 2026 at 00:00 (UTC)" in text
                assert not re.search(ENGLISH, translated(text)), translated(text)
        turn = build_turn_refusal(2_000_000_000, 5, 6).text
        assert "$2,000.00" in turn
        assert not re.search(ENGLISH, translated(turn)), translated(turn)


def test_what_the_server_did_not_say_itself_stays_as_it_was() -> None:
    with translation.override("de"):
        assert translated("") == ""
        words = "Odd: 20% of it; nothing. The API failed"
        assert translated(words) == words
        both = f"The model said so. {LEFT_OUT}"
        assert translated(both) == f"The model said so. {_(LEFT_OUT)}"
        note = "Summarised 12 messages into about 1,234 tokens, freed about 9; frees about 9 tokens"
        assert translated(f"{note} a call").endswith(
            "etwa 9 frei geworden; spart etwa 9 Token je Aufruf"
        )
        assert translated("low: must be from 1 to 2") == "low: muss zwischen 1 und 2 liegen"
        budget = UNITS["turns"].refusal % (VALUES | {"budget": "Some budget"})
        assert translated(budget) == budget
        assert (
            translated(f"{'x' * 500} has no price for input; an administrator can add one.")[0]
            == "x"
        )


def test_values_are_shown_as_the_reader_writes_them() -> None:
    with translation.override("de"):
        assert SHOWN["amount"]("$1,234.50") == "$1.234,50"
        assert SHOWN["amount"]("<$0.0001") == "<$0,0001"
        assert SHOWN["amount"]("12,345 tokens") == "12.345 Token"
        assert SHOWN["amount"]("1 turn") == "1 Durchgang"
        assert SHOWN["whose"]("Haiku, from group A, B") == "Haiku, von der Gruppe A, B"
        assert SHOWN["whose"]("from group A, B") == "von der Gruppe A, B"
        assert SHOWN["date"]("1 December 2026 at 00:00 (UTC)") == "1. Dezember 2026 00:00 (UTC)"
        assert SHOWN["date"]("one day") == "one day"
        assert SHOWN["count"]("12,345") == "12.345"
        assert SHOWN["count"]("many") is None
        assert SHOWN["wait"]("soon") == "soon"


def list_mail_sentences() -> Iterator[str]:
    """Yield what the trial of a mail account may say, with 7 for each value."""
    for name in ("connection", "folders", "imap", "oauth", "replies", "smtp", "trial"):
        source = (ROOT / "tools" / "mail" / f"{name}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = node.exc.args[0]
                parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts
                )


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_the_trial_of_a_mail_account_says_is_in_the_readers_language(
    language: str,
) -> None:
    said = {text for text in list_mail_sentences() if text != "7" and "given the mail" not in text}
    assert len(said) > 25
    with translation.override(language):
        assert [text for text in said if translated(text) == text] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_note_of_a_change_that_no_threshold_made_is_in_the_readers_language(
    language: str,
) -> None:
    dropped = "Dropped the 12 oldest messages: asked for by hand"
    notes = (NOTE, TURN_LEFT_OUT, *NOTES.values(), *in_full.NOTES.values(), dropped)
    with translation.override(language):
        assert [text for text in notes if translated(text) != _(text) and text != dropped] == []
        assert [text for text in notes if translated(text) == text] == []
        assert _("asked for by hand") in translated(dropped)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_can_be_done_instead_is_said_in_the_readers_language(language: str) -> None:
    with translation.override(language):
        for kind in KINDS.values():
            assert not kind.instead or _(kind.instead) != kind.instead


def test_no_sentence_is_recorded_which_no_page_could_translate() -> None:
    plain = []
    for path in sorted((ROOT / "conversations").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                texts = node.args[RECORDING.get(node.func.id, 9) :][:1]
                plain += [
                    f"{path.name}: {ast.unparse(text)}"
                    for text in texts
                    if isinstance(text, ast.JoinedStr)
                    or (isinstance(text, ast.Constant) and " " in str(text.value))
                ]
    assert plain == []
