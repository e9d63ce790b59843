"""CSV: export of budgets and ledger, import of budgets and prices; all of a file or nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.admin.csv_export import SentAsFiles
from conversations.budgets.csv_import import MOST_CHARS, MOST_LINES
from conversations.budgets.grants import correct_window
from conversations.budgets.import_budgets import COLUMNS, import_budgets
from conversations.budgets.usage.cells import unquote_cell, write_csv_lines
from conversations.models import Budget, BudgetWindow, LedgerEntry, ModelPrice, User
from tests.support import budget_rows, people_and_turns
from tests.support.stored_turns import played
from tests.web.test_admin_budgets import client_of, words
from tests.web.test_admin_review import staff

pytestmark = pytest.mark.django_db
#: Without the column of models, which older files lack.
HEAD = ",".join(COLUMNS[:-1])
FILE = f"""{HEAD}
site,,pool,money,month,100,UTC,"50,90",yes,for all
group,Research,per_member,tokens,week,"1,000,000",,,yes,
user,ada,per_member,money,day,2.50,Europe/Vienna,,yes,
"""


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create(username="root", is_staff=True, is_superuser=True))


@pytest.fixture
def ada() -> User:
    return budget_rows.member("Research")


def file(client: Client, name: str, query: str = "") -> list[list[str]]:
    response = client.get(reverse(name) + query)
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(b"".join(response).decode("utf-8-sig"))))


def taken(client: Client, text: str, page: str = "admin:budgets_import", **more: str) -> Any:
    return client.post(reverse(page), {"text": text} | more)


def confirmed(client: Client, text: str, page: str = "admin:budgets_import") -> Any:
    digest = taken(client, text, page).context["plan"].digest
    return taken(client, text, page, digest=digest, confirm="1")


def test_a_file_is_previewed_and_then_taken_in(root: Client, ada: User) -> None:
    preview = taken(root, FILE)
    assert "3 changes would be made" in words(preview)
    assert "site pool money month: $100.00 (told at 50,90, “for all”), new" in words(preview)
    assert not Budget.objects.exists()
    assert confirmed(root, FILE).status_code == 302
    pool, group, own = Budget.objects.order_by("pk")
    assert (pool.limit, pool.soft_percents, pool.note) == (100_000_000, "50,90", "for all")
    assert (group.limit, group.group.name, group.period) == (1_000_000, "Research", "week")
    assert (own.limit, own.user, own.time_zone) == (2_500_000, ada, "Europe/Vienna")
    entries = LogEntry.objects.all()
    assert {entry.user.username for entry in entries} == {"root"}
    assert entries.count() == 3
    assert all(entry.change_message.startswith("From a CSV file: ") for entry in entries)


def test_an_upload_is_taken_as_text_is(root: Client, ada: User) -> None:
    upload = SimpleUploadedFile("budgets.csv", ("\ufeff" + FILE).encode())
    preview = root.post(reverse("admin:budgets_import"), {"file": upload})
    assert preview.context["plan"].changes == 3
    odd = SimpleUploadedFile("budgets.csv", b"\xff\xfe\x00")
    assert "not UTF-8" in words(root.post(reverse("admin:budgets_import"), {"file": odd}))
    assert "Choose a file" in words(taken(root, " "))


def test_what_went_out_comes_in_and_changes_nothing(root: Client, ada: User) -> None:
    budget_rows.site(7_000_001, kind="pool", note="=1+1", soft_percents="")
    people_and_turns.limited(ada, 5, unit="turns", is_active=False)
    people_and_turns.limited(ada, 9, unit="turns", note="'=x")
    out = file(root, "admin:budgets_csv")
    assert out[0] == list(COLUMNS)
    assert {row[-2] for row in out[1:]} == {"", "'=1+1", "''=x"}
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in out)
    plan = import_budgets(text=text, actor=User.objects.get(username="root"))
    assert [line.verb for line in plan.lines] == ["same", "same", "same"]
    assert len(file(root, "admin:budgets_csv", "?scope__exact=site")) == 2


def test_a_limit_is_changed_and_a_budget_switched_off(root: Client, ada: User) -> None:
    budget_rows.site(5, note="old", soft_percents="50")
    people_and_turns.limited(ada, 5_000_000)
    text = (
        "scope,subject,kind,unit,period,limit,active\nsite,,per_member,money,month,1,yes\n"
        "user,ada,per_member,money,month,,no\nuser,ada,per_member,money,day,,no\n"
    )
    preview = words(taken(root, text))
    assert "$0.0000 (told at 50, “old”) → $1.00 (told at 50, “old”)" in preview or "→ $1.00" in (
        preview
    )
    assert "switched off" in preview
    assert "off already" in preview
    assert confirmed(root, text).status_code == 302
    site, own = Budget.objects.order_by("scope")
    assert (site.limit, site.note, site.soft_percents) == (1_000_000, "old", "50")
    assert (own.is_active, own.limit) == (False, 5_000_000)


def test_a_limit_left_empty_stays_as_it_is(root: Client) -> None:
    budget = budget_rows.site(5_000_000, soft_percents="50")
    text = "scope,subject,kind,unit,period,limit,soft_percents\nsite,,per_member,money,month,,90\n"
    assert confirmed(root, text).status_code == 302
    budget.refresh_from_db()
    assert (budget.limit, budget.soft_percents) == (5_000_000, "90")


def test_what_was_switched_off_more_than_once_comes_in_as_it_went_out(
    root: Client, ada: User
) -> None:
    for limit in (1, 2):
        Budget.objects.create(user=ada, period="day", limit=limit, is_active=False)
    rows = file(root, "admin:budgets_csv")
    text = b"".join(write_csv_lines(rows)).decode()
    plan = taken(root, text).context["plan"]
    assert (plan.errors, plan.changes, len(plan.lines)) == (0, 0, 2)


def test_a_file_that_is_too_long_is_not_read(root: Client) -> None:
    long = SimpleUploadedFile("long.csv", "€".encode() * MOST_CHARS * 2)
    page = root.post(reverse("admin:budgets_import"), {"file": long})
    assert "A file has at most 500,000 characters." in words(page)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("user,nobody,per_member,money,day,1,,,yes,", "There is no user 'nobody'."),
        ("group,nobody,pool,money,day,1,,,yes,", "There is no group 'nobody'."),
        ("site,ada,pool,money,day,1,,,yes,", "has no subject"),
        ("town,,pool,money,day,1,,,yes,", "scope is one of site, group, user, not 'town'."),
        ("site,,pool,euros,day,1,,,yes,", "unit is one of money, tokens, turns"),
        ("site,,pool,money,year,1,,,yes,", "period is one of minute, hour, day"),
        ("site,,pool,money,day,1,,,perhaps,", "active is one of yes, no"),
        ("site,,pool,money,day,many,,,yes,", "limit: 'many' is no amount of dollars."),
        ("site,,pool,money,day,,,,yes,", "limit: '' is no amount of dollars."),
        ("site,,pool,money,day,-1,,,yes,", "greater than or equal to 0"),
        ("site,,pool,money,day,1e20,,,yes,", "less than or equal to"),
        ("site,,pool,money,day,Infinity,,,yes,", "micro-dollars can say"),
        ("site,,pool,tokens,day,1.5,,,yes,", "no whole number of tokens"),
        ("site,,pool,money,day,1,Mars/North,,yes,", "no time zone"),
        ("site,,pool,money,day,1,,x,yes,", "percent"),
        ("user,ada,pool,money,day,1,,,yes,", "What is set for one person is no pool"),
        ("user,ada,per_member,money,day,1,,,yes,", "another line sets the same budget"),
        ("site,,pool,money,day", "has not as many cells"),
        ('site,,pool,money,day,1,,,yes,"', "is no CSV"),
        (f"site,,pool,money,day,1,,,yes,{'x' * 201}", "at most 200"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_is_named_and_nothing_is_done(
    line: str, said: str, root: Client, ada: User
) -> None:
    text = f"{HEAD}\nuser,ada,per_member,money,day,2.50,,,yes,\n{line}\n"
    response = taken(root, text)
    assert response.status_code == 400
    plan = response.context["plan"]
    [problem] = [one for one in plan.lines if one.verb == "error"]
    assert said in problem.text
    assert problem.number == 3 or re.search(r"Line [23] ", problem.text)
    assert "so none is" in words(response)
    assert taken(root, text, digest=plan.digest, confirm="1").status_code == 400
    assert not Budget.objects.exists()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "The first line names the columns"), (HEAD, "nothing below"),
        (f"{HEAD},scope\n", "The first line names the columns"),
        (f"{HEAD}\n" + "site,,pool,money,day,1,,,yes,\n" * (MOST_LINES + 1), "At most 1,000 lines"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_as_a_whole(text: str, said: str, root: Client) -> None:
    assert said in words(taken(root, text))
    assert not Budget.objects.exists()


def test_characters_that_are_none_are_refused_in_a_file(root: Client) -> None:
    upload = SimpleUploadedFile("x.csv", f"{HEAD}\nsite,,pool,money,day,1,,,yes,\0\n".encode())
    assert "characters that are none" in words(
        root.post(reverse("admin:budgets_import"), {"file": upload})
    )


def test_what_was_changed_since_the_preview_is_shown_again(root: Client, ada: User) -> None:
    digest = taken(root, FILE).context["plan"].digest
    budget_rows.site(5, kind="pool")
    response = taken(root, FILE, digest=digest, confirm="1")
    assert "Something changed since the preview" in words(response)
    assert Budget.objects.count() == 1
    assert taken(root, FILE, confirm="1").status_code == 400
    assert Budget.objects.count() == 1


def test_a_used_budget_keeps_its_time_zone(root: Client, ada: User) -> None:
    people_and_turns.limited(ada, 5, "day")
    assert "Its windows are cut in UTC" in words(taken(root, FILE))


def test_taking_in_needs_the_permission_to_add_and_change() -> None:
    for client in (staff("bob"), staff("cid", "add_budget"), staff("dan", "change_budget")):
        assert client.get(reverse("admin:budgets_import")).status_code == 403
        assert taken(client, FILE).status_code == 403
        assert client.get(reverse("admin:prices_import")).status_code == 403
    both = staff("eve", "add_budget", "change_budget")
    assert both.get(reverse("admin:budgets_import")).status_code == 200
    listing = reverse("admin:conversations_budget_changelist")
    assert reverse("admin:budgets_import") in both.get(listing).content.decode()
    stranger = Client()
    stranger.force_login(User.objects.create(username="zoe", is_staff=True))
    for name in ("admin:budgets_csv", "admin:ledger_csv"):
        assert stranger.get(reverse(name)).status_code == 403


def test_a_list_of_money_says_the_same_as_csv_and_as_json_lines(root: Client) -> None:
    played("ada")
    people_and_turns.limited(
        User.objects.get(username="ada"), 2_500_001, "day", note="=1+1, ärgerlich"
    )
    shared = {shown for shown in admin.site._registry.values() if isinstance(shown, SentAsFiles)}
    assert {shown.word for shown in shared} > {"budgets", "ledger", "money-records", "calls"}
    for word in ("budgets", "ledger", "money-records"):
        names, *rows = file(root, f"admin:{word}_csv")
        response = root.get(reverse(f"admin:{word}_jsonl"))
        assert response["Content-Type"] == "application/x-ndjson"
        assert response["Content-Disposition"] == f'attachment; filename="agentweb-{word}.jsonl"'
        objects = [json.loads(line) for line in b"".join(response).decode().splitlines()]
        assert objects
        for cells, record in zip(rows, objects, strict=True):
            values = ["" if value is None else str(value) for value in record.values()]
            assert list(record) == names
            assert [unquote_cell(cell) for cell in cells] == values


def test_the_lists_of_money_link_to_their_files_with_what_they_are_filtered_by(
    root: Client,
) -> None:
    for table in ("budget", "ledgerentry", "moneyrecord"):
        listing = reverse(f"admin:conversations_{table}_changelist")
        page = root.get(f"{listing}?q=none").content.decode()
        for ending in ("csv", "jsonl"):
            assert f'href="{listing}export.{ending}?q=none"' in page


def test_the_ledger_goes_out_as_it_is_filtered(root: Client) -> None:
    played("ada")
    window = BudgetWindow.objects.get()
    actor = User.objects.get(username="root")
    correct_window(window_id=window.pk, amount=-7, reason='=HYPERLINK("x")', actor=actor)
    head, *rows = file(root, "admin:ledger_csv")
    assert len(rows) == LedgerEntry.objects.count() == 7
    newest = dict(zip(head, rows[0], strict=True))
    assert (newest["kind"], newest["amount"], newest["by"]) == ("adjust", "-0.000007", "root")
    assert newest["reason"] == '\'=HYPERLINK("x")'
    settled = [row for row in rows if row[2] == "settle"]
    found = sum(round(float(row[3]) * 1_000_000) for row in settled)
    assert found - 7 == window.spent - 7
    for query, count in (
        ("?kind__exact=settle", 3), ("?purpose=summary", 2), ("?purpose=reply", 4),
        ("?q=nobody", 0), (f"?window__id__exact={window.pk}", 7),
    ):  # fmt: skip
        assert len(file(root, "admin:ledger_csv", query)) == count + 1
        page = reverse("admin:conversations_ledgerentry_changelist") + query
        assert root.get(page).content.decode().count('class="field-kind"') == count
    assert root.get(reverse("admin:ledger_csv") + "?nonsense=1").status_code == 400


def test_a_file_of_the_ledger_costs_the_same_however_long_it_is(root: Client) -> None:
    counts = []
    for name in ("ada", "bea", "cleo"):
        played(name)
        with CaptureQueriesContext(connection) as queries:
            file(root, "admin:ledger_csv")
        counts.append(len(queries))
    assert counts[0] == counts[2]


def test_prices_are_taken_in_all_or_none(root: Client) -> None:
    head = "model,kind,dollars_per_million,above_tokens,effective_from,source\n"
    good = head + "claude-haiku-4-5,input,1.25,,,contract\n"
    before = ModelPrice.objects.count()
    preview = taken(root, good, "admin:prices_import")
    assert "claude-haiku-4-5 input: $1.25 per million" in words(preview)
    for bad in ("-1", "NaN", "1e300", "Infinity", ""):
        wrong = f"{good}claude-haiku-4-5,output,{bad},,,\n"
        assert taken(root, wrong, "admin:prices_import").status_code == 400
        assert confirmed(root, wrong, "admin:prices_import").status_code == 400
    assert ModelPrice.objects.count() == before
    digest = taken(root, good, "admin:prices_import").context["plan"].digest
    answer = taken(root, good, "admin:prices_import", digest=digest, confirm="1")
    # The preview of a price that begins at once omits the minute, so it can be confirmed later.
    assert "$1.25 per million from now on" in words(preview)
    assert answer.status_code == 302
    assert ModelPrice.objects.count() == before + 1
    [told] = LogEntry.objects.all()
    assert told.object_id == str(ModelPrice.objects.latest("pk").pk)
    assert "From a CSV file: claude-haiku-4-5 input" in told.get_change_message()


@pytest.mark.parametrize("text", ["=1", "'=1", "''-2", "x", "'x", "' =1", "", "'", "+49 1", "-"])
def test_a_cell_that_went_out_is_read_as_it_was(text: str) -> None:
    (row,) = csv.reader(io.StringIO(b"".join(write_csv_lines([[text]])).decode("utf-8-sig")))
    cell = row[0] if row else ""
    assert unquote_cell(cell) == text
    assert not cell.startswith(("=", "+", "-"))
