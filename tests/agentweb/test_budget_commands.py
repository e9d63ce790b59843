"""`manage.py budgets`, `ledger`, `prices`, `bench budgets`: what they say, with which code."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from agentweb.bench import budget_cost as bench
from agentweb.emulator.server import EmulatorServer, start
from conversations.accounts.roles import ROLES
from conversations.budgets.prices import load_price_list
from conversations.budgets.reconciliation import has_drift
from conversations.budgets.status import list_statuses
from conversations.models import (
    ApiModel,
    Budget,
    BudgetWindow,
    Grant,
    LedgerEntry,
    ModelPrice,
    Reservation,
)
from conversations.web.health import DRIFT, list_problems
from tests.support import people_and_turns, stored_turns
from tests.support.budget_rows import clean, member, play

pytestmark = pytest.mark.django_db
OLD = datetime(2026, 1, 1, tzinfo=UTC)


def run(*words: str, code: int = 0) -> str:
    out = StringIO()
    if not code:
        call_command(*words, stdout=out, stderr=out)
        return out.getvalue()
    with pytest.raises((CommandError, SystemExit)) as error:
        call_command(*words, stdout=out, stderr=out)
    found = error.value
    assert (found.returncode if isinstance(found, CommandError) else found.code) == code
    return out.getvalue() + str(found)


def test_budgets_show_says_where_each_comes_from_and_how_it_stands() -> None:
    user = member("Research")
    assert "no budget limits ada" in run("budgets", "show", "ada")
    run("budgets", "set", "--group", "Research", "12.5", "--zone", "Europe/Vienna")
    run("budgets", "set", "--site", "40000", "--unit", "tokens", "--period", "day", "--pool")
    play(people_and_turns.started_turn(user))
    said = run("budgets", "show", "ada")
    assert "month, from group Research: $0.0004 spent of $12.50, until" in said
    assert "00:00 (Europe/Vienna)" in said
    assert "day, shared by everybody: 120 tokens spent of 40,000 tokens" in said
    assert "a turn: money no cap, 40 model calls, 200 tool calls, 900 seconds" in said


def test_budgets_set_changes_the_limit_in_place_and_switches_off() -> None:
    member()
    assert "$5.00 a month, on" in run("budgets", "set", "--user", "ada", "5")
    run("budgets", "set", "--user", "ada", "$7.000001")
    assert Budget.objects.get().limit == 7_000_001
    assert ", off" in run("budgets", "set", "--user", "ada", "off")
    assert "There is no such budget" in run("budgets", "set", "--user", "ada", "off", code=1)
    assert list_statuses(1) == ()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("show", "bea"), "there is no user 'bea'", 2),
        (("set", "--group", "Nobody", "5"), "there is no group 'Nobody'", 2),
        (("set", "--user", "ada", "much"), "no amount of dollars", 2),
        (("set", "--user", "ada", "NaN"), "micro-dollars", 2),
        (("set", "--user", "ada", "0.0000001"), "micro-dollars", 2),
        (("set", "--user", "ada", "5.5", "--unit", "turns"), "no whole number of turns", 2),
        (("set", "--user", "ada", "--", "-5"), "greater than or equal to 0", 1),
        (("set", "--user", "ada", "9999999999"), "less than or equal to", 1),
        (("set", "--user", "ada", "5", "--zone", "Mars"), "There is no time zone 'Mars'", 1),
        (("set", "--user", "ada", "5", "--pool"), "is no pool", 1),
        (("grant", "ada", "5", "--reason", "x"), "nothing to add to", 2),
        (("exempt", "ada", "on", "--by", "ada", "--reason", " "), "Say why", 1),
    ],
)
def test_budgets_refuses_what_cannot_be_meant(words: Any, said: str, code: int) -> None:
    member()
    assert said in run("budgets", *words, code=code)
    assert not Budget.objects.exists()


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59", "9999-12-31", "0001-01-01"])
def test_a_day_that_other_zones_cannot_write_is_refused(until: str) -> None:
    member()
    run("budgets", "set", "--user", "ada", "5", "--zone", "America/Los_Angeles")
    words = ("budgets", "grant", "ada", "5", "--until", until, "--reason", "x")
    assert f"'{until}' is no date" in run(*words, code=2)
    assert not Grant.objects.exists()


def test_a_grant_adds_until_a_day_in_the_budgets_zone() -> None:
    member()
    boss = people_and_turns.person("boss")
    run("budgets", "set", "--user", "ada", "5", "--zone", "Asia/Tokyo")
    run("budgets", "set", "--user", "ada", "1", "--period", "day")
    words = ("budgets", "grant", "ada", "2.5", "--reason", "a trial", "--by", "boss")
    assert "say --period: month, day" in run(*words, code=2)
    day = timezone.now().date() + timedelta(days=2)
    said = run(*words, "--period", "month", "--until", day.isoformat())
    assert "$2.50 more" in said
    assert "of $7.50" in said
    grant = Grant.objects.get()
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert grant.expires_at == midnight - timedelta(hours=9)
    assert (grant.actor, grant.reason) == (boss, "a trial")
    for until, said, code in [
        ("2001-01-01", "later than now", 1),
        ("soon", "no date", 2),
        ("2026-02-31", "no date", 2),
    ]:
        assert said in run(*words, "--period", "day", "--until", until, code=code)
    assert Grant.objects.count() == 1


def test_who_is_exempt_is_set_by_name_and_on_record() -> None:
    user, _ = member(), people_and_turns.person("boss")
    words = ("budgets", "exempt", "ada", "on", "--by", "boss", "--reason", "the owner")
    assert "ada is exempt from budgets\n" in run(*words)
    assert "(as before)" in run(*words)
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id) == ("boss", str(user.pk))
    assert entry.change_message == "Exempt from budgets: the owner"
    assert "ada is exempt" in run("budgets", "show", "ada")


def drifted() -> BudgetWindow:
    user = member()
    people_and_turns.limited(user, 50_000_000)
    play(people_and_turns.started_turn(user))
    BudgetWindow.objects.update(spent=7, held=9)
    return BudgetWindow.objects.get()


def test_the_ledger_names_windows_that_differ_and_fails() -> None:
    assert "0 windows, the ledger agrees" in run("ledger")
    window = drifted()
    said = run("ledger", code=1)
    assert f"budgetwindow {window.pk}: spent is 7, not 400" in said
    assert "held is 9, not 0" in said
    found = json.loads(run("ledger", "--json", code=1).splitlines()[0].removesuffix("1"))
    assert (found["windows"], len(found["found"])) == (1, 2)


def test_drift_is_seen_by_the_readiness_check_without_a_word_of_whose() -> None:
    assert list_problems() == ()
    drifted()
    assert has_drift()
    assert list_problems() == (DRIFT,)


def test_a_reservation_of_which_its_window_knows_nothing_is_drift() -> None:
    user = member()
    people_and_turns.limited(user, 50_000_000)
    people_and_turns.opened(people_and_turns.started_turn(user))
    assert not has_drift()
    BudgetWindow.objects.update(held=0)
    assert has_drift()
    Reservation.objects.update(is_open=False)
    assert not has_drift()


def test_recomputing_sets_a_window_to_its_entries_and_says_so() -> None:
    drifted()
    said = run("ledger", "recompute", "--reason", "after a crash")
    assert "1 windows recomputed" in said
    assert "the ledger agrees" in said
    entry = LedgerEntry.objects.get(kind="adjust")
    assert entry.amount == 0
    assert entry.reason == "after a crash (recomputed; it said held 9, spent 7)"
    assert "0 windows recomputed" in run("ledger", "recompute", "--reason", "again")
    assert clean()


def test_a_correction_is_an_entry_with_a_reason() -> None:
    user = member()
    people_and_turns.limited(user, 50_000_000)
    cost = play(people_and_turns.started_turn(user))
    window = str(BudgetWindow.objects.get().pk)
    correct = ("ledger", "correct", "--reason", "a gift", "--by", "ada", window)
    assert "the ledger agrees" in run(*correct, "--", str(-cost))
    assert BudgetWindow.objects.get().spent == 0
    assert "cannot be corrected" in run(*correct, "--", "-1", code=2)
    run(*correct, "60000000")
    assert BudgetWindow.objects.get().spent == 60_000_000
    entries = LedgerEntry.objects.filter(kind="adjust").values_list("reason", "actor__username")
    assert set(entries) == {("a gift", "ada")}
    assert "There is no window" in run("ledger", "correct", "--reason", "x", "99", "1", code=2)
    assert clean()


def prices(tmp_path: Path, text: str, name: str = "new.csv") -> str:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return str(file)


HEAD = "model,kind,dollars_per_million,above_tokens,effective_from,source\n"


def test_loading_closes_the_present_price_and_inserts_the_new_one(tmp_path: Path) -> None:
    rows = f"{stored_turns.MODEL},output,12.5,,,a list\n{stored_turns.MODEL},input,2,0,,\n"
    file = prices(tmp_path, HEAD + rows)
    before = list(ModelPrice.objects.order_by("pk").values())
    assert "1 would change" in run("prices", "load", file, "--dry-run")
    assert list(ModelPrice.objects.order_by("pk").values()) == before
    said = run("prices", "load", file)
    assert "output: $12.50 per million from" in said
    assert "(was $10.00)" in said
    assert "1 changed" in said
    assert "0 changed" in run("prices", "load", file)
    old, new = ModelPrice.objects.filter(model=stored_turns.MODEL, kind="output").order_by("pk")
    assert old.effective_to == new.effective_from
    assert load_price_list(stored_turns.MODEL, timezone.now()).rate("output", 0) == 12_500_000
    past = timezone.now() - timedelta(days=1)
    assert load_price_list(stored_turns.MODEL, past).rate("output", 0) == 10_000_000
    assert "$12.50 per million" in run("prices", "list", "--model", stored_turns.MODEL)


def test_a_list_of_no_prices_says_so_and_names_the_models_there_are(tmp_path: Path) -> None:
    said = run("prices", "list", "--model", "unknown", code=2)
    assert "'unknown' is not in the catalogue" in said
    assert stored_turns.MODEL in said
    ApiModel.objects.create(id="claude-new", window=200_000, max_output=8_000)
    assert run("prices", "list", "--model", "claude-new").startswith("no price is in force\n")
    assert "there is no price\n" in run("prices", "list", "--model", "claude-new", "--all")
    file = tmp_path / "none.csv"
    said = run("prices", "load", str(file), code=2)
    assert said == f"{file} cannot be read: No such file or directory"


def test_a_price_of_the_future_counts_from_then(tmp_path: Path) -> None:
    rows = [{"model": stored_turns.MODEL, "kind": "input", "dollars_per_million": 0,
             "effective_from": "2099-01-01"}]  # fmt: skip
    run("prices", "load", prices(tmp_path, json.dumps(rows), "new.json"))
    assert load_price_list(stored_turns.MODEL, timezone.now()).rate("input", 0) == 2_000_000
    assert (
        load_price_list(stored_turns.MODEL, datetime(2099, 1, 2, tzinfo=UTC)).rate("input", 0) == 0
    )


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("model,price\nx,1\n", "its columns are", 2),
        (HEAD + "claude-sonnet-5-5,input,-3,,,\n", "is not possible", 1),
        (HEAD + "claude-sonnet-5-5,input,NaN,,,\n", "price 2: 'NaN'", 2),
        (HEAD + "claude-sonnet-5-5,input,1e400,,,\n", "is not possible", 1),
        (HEAD + "claude-sonnet-5-5,input,,,,\n", "no amount of dollars", 2),
        (HEAD + "claude-sonnet-5-5,input,1,many,,\n", "no number of tokens", 2),
        (HEAD + "claude-sonnet-5-5,input,1,-1,,\n", "is not possible", 1),
        (HEAD + "claude-sonnet-5-5,tea,1,,,\n", "there is no such kind", 1),
        (HEAD + "claude-x,input,1,,,\n", "has no such model", 1),
        (HEAD + "claude-sonnet-5-5,input,1,,2026-01-01,\n", "begin in the past", 1),
        (HEAD + "claude-sonnet-5-5,input,1,,someday,\n", "no date", 2),
        (HEAD + "claude-sonnet-5-5,input,1,,9999-12-31T23:59:59-10:00,\n", "no date", 2),
        (HEAD, "has no prices", 2),
    ],
)
def test_prices_that_make_no_sense_are_refused_and_none_is_taken(
    text: str, said: str, code: int, tmp_path: Path
) -> None:
    before = list(ModelPrice.objects.order_by("pk").values())
    good = "claude-haiku-5-5,output,9,,,\n"
    file = prices(tmp_path, text.replace(HEAD, HEAD + good) if text != HEAD else text)
    assert said in run("prices", "load", file, code=code)
    assert list(ModelPrice.objects.order_by("pk").values()) == before


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert "cannot be read" in run("prices", "load", str(tmp_path / "none.csv"), code=2)
    assert "cannot be read" in run("prices", "load", prices(tmp_path, "{", "a.json"), code=2)
    deep = prices(tmp_path, "[" * 100_000, "a.json")
    assert "cannot be read" in run("prices", "load", deep, code=2)
    nested = prices(tmp_path, '[{"model": "x", "source": [[]]}]', "a.json")
    assert "text or a number" in run("prices", "load", nested, code=2)
    assert "no list of prices" in run("prices", "load", prices(tmp_path, "{}", "a.json"), code=2)


@pytest.fixture(scope="module")
def api() -> Any:
    with start(pace=0) as running:
        yield running


def test_refreshing_asks_the_api_for_models_and_never_for_prices(
    api: EmulatorServer, settings: Any
) -> None:
    settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY = api.url, "sk-test"
    priced = list(ModelPrice.objects.order_by("pk").values())
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=5, max_output=6)
    missing = ApiModel.objects.filter(pk="claude-opus-4-5")
    ModelPrice.objects.filter(model="claude-opus-4-5").delete()
    missing.delete()
    said = run("prices", "refresh", "--dry-run")
    assert ApiModel.objects.get(pk=stored_turns.MODEL).window == 5
    assert f"{stored_turns.MODEL}: window 5 -> 1000000" in said
    assert run("prices", "refresh") == said.replace("would change", "changed")
    row = ApiModel.objects.get(pk=stored_turns.MODEL)
    assert (row.window, row.max_output, row.lifecycle) == (1_000_000, 128_000, "active")
    assert not ApiModel.objects.filter(prices=None, is_enabled=True).exists()
    assert "0 changed" in run("prices", "refresh")
    left = [each for each in priced if each["model_id"] != "claude-opus-4-5"]
    assert list(ModelPrice.objects.order_by("pk").values()) == left


def test_refreshing_without_an_api_says_so(settings: Any) -> None:
    settings.ANTHROPIC_BASE_URL = settings.ANTHROPIC_API_KEY = ""
    assert "set ANTHROPIC_API_KEY" in run("prices", "refresh", code=2)
    settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY = "http://127.0.0.1:9", "sk-test"
    assert "cannot be reached" in run("prices", "refresh", code=1)


def test_an_enabled_model_without_a_price_is_a_warning_of_the_system_check() -> None:
    assert [m.id for m in run_checks(databases=["default"]) if m.id.startswith("agentweb")] == []
    ModelPrice.objects.filter(model=stored_turns.MODEL, kind="output").delete()
    ApiModel.objects.create(id="off", window=9, max_output=9, thinking="always", is_enabled=False)
    [warning] = [m for m in run_checks(databases=["default"]) if m.id == "agentweb.W001"]
    assert f"The model {stored_turns.MODEL} is enabled and has no price for output" in warning.msg
    assert run_checks(tags=["database"]) == []


def test_an_enabled_model_with_a_small_window_is_a_warning_of_the_system_check() -> None:
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=31_999)
    [warning] = [m for m in run_checks(databases=["default"]) if m.id == "agentweb.W002"]
    assert f"The model {stored_turns.MODEL} takes 31,999 tokens" in warning.msg
    ApiModel.objects.filter(pk=stored_turns.MODEL).update(window=32_000)
    assert not [m for m in run_checks(databases=["default"]) if m.id == "agentweb.W002"]


def test_the_system_check_runs_on_a_database_that_is_yet_to_be_migrated() -> None:
    ModelPrice.objects.filter(model=stored_turns.MODEL, kind="output").delete()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE conversations_apimodel DROP COLUMN thresholds")
    assert [m.id for m in run_checks(databases=["default"]) if m.id.startswith("agentweb")] == []


@pytest.mark.parametrize(
    ("name", "value", "id"),
    [("AGENTWEB_BUDGET_TIME_ZONE", "Mars", "E004"), ("AGENTWEB_MAX_TURN_MICROS", -1, "E002")],
)
def test_settings_of_budgets_are_checked(name: str, value: Any, id: str, settings: Any) -> None:
    setattr(settings, name, value)
    assert f"agentweb.{id}" in [message.id for message in run_checks()]


def test_the_bench_measures_calls_with_and_without_budgets() -> None:
    none, one, many = bench.measure(1)
    assert (none.budgets, one.budgets, many.budgets) == (0, 1, 31)
    assert none.statements < one.statements == many.statements
    assert many.data["ratio"]
    assert Group.objects.count() == len(ROLES) + 3
    assert clean()
