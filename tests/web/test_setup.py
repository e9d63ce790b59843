"""The set-up page: one link creates one administrator, once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from conversations.models import User
from conversations.web.setup import read_setup_token
from tests.support import people_and_turns

PASSWORD = "quite a long password 7"
FORM = {"username": "root", "email": "", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any, db: None) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def link() -> str:
    token = read_setup_token()
    assert token
    return f"/setup/{token}/"


def test_the_link_makes_the_first_administrator_and_logs_them_in(folder: Path) -> None:
    client, url = Client(), link()
    assert client.get(url).status_code == 200
    answer = client.post(url, FORM)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    user = User.objects.get()
    assert (user.is_superuser, user.is_staff, user.is_active) == (True, True, True)
    assert user.check_password(PASSWORD)
    assert client.get("/c/new/").status_code == 200
    assert not (folder / "setup_token").exists()


def test_the_link_works_once() -> None:
    url = link()
    Client().post(url, FORM)
    assert Client().get(url).status_code == 404
    assert Client().post(url, FORM | {"username": "second"}).status_code == 404
    assert User.objects.count() == 1
    assert read_setup_token() is None


@pytest.mark.parametrize("token", ["wrong", "%00", "é", "x" * 5_000, "%20", "None"])
def test_a_wrong_token_is_not_found(token: str) -> None:
    link()
    for answer in (Client().get(f"/setup/{token}/"), Client().post(f"/setup/{token}/", FORM)):
        assert answer.status_code == 404
    assert not User.objects.exists()


def test_a_visit_makes_no_token(folder: Path) -> None:
    assert Client().get("/setup/guessed/").status_code == 404
    assert list(folder.iterdir()) == []


def test_a_token_that_was_lost_is_made_anew_and_the_empty_one_is_none(folder: Path) -> None:
    (folder / "setup_token").write_text("", encoding="ascii")
    assert len(read_setup_token() or "") > 20
    assert Client().get("/setup//").status_code == 404


def test_where_an_administrator_is_there_is_no_set_up(folder: Path) -> None:
    url = link()
    people_and_turns.person("root", is_superuser=True, is_staff=True)
    assert Client().get(url).status_code == 404
    assert Client().post(url, FORM | {"username": "second"}).status_code == 404
    assert User.objects.count() == 1
    assert read_setup_token() is None
    assert not (folder / "setup_token").exists()


def test_an_ordinary_user_is_no_administrator() -> None:
    people_and_turns.person("ada")
    assert Client().get(link()).status_code == 200


def test_the_token_is_for_its_owner_only(folder: Path) -> None:
    link()
    assert stat.S_IMODE((folder / "setup_token").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["setup_token"]


def test_the_token_stays_until_it_is_used() -> None:
    first = link()
    assert link() == first
    bad = Client().post(first, FORM | {"password2": "another"})
    assert bad.status_code == 400
    assert link() == first
    assert PASSWORD.encode() not in bad.content


@pytest.mark.parametrize(
    "change",
    [{"username": ""}, {"password1": "1234", "password2": "1234"}, {"username": "a\0b"},
     {"email": "no address"}, {"username": "x" * 151}],
)  # fmt: skip
def test_a_bad_form_makes_nobody(change: dict[str, str]) -> None:
    assert Client().post(link(), FORM | change).status_code == 400
    assert not User.objects.exists()


def test_the_form_is_protected_like_any_other() -> None:
    assert Client(enforce_csrf_checks=True).post(link(), FORM).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_posts_at_once_make_one_administrator() -> None:
    url = link()

    def post(at: int) -> int:
        return Client().post(url, FORM | {"username": f"root{at}"}).status_code

    assert sorted(map(str, people_and_turns.crowd(6, post))) == ["302"] + ["404"] * 5
    assert User.objects.count() == 1
