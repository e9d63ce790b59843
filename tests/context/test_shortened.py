"""Shortening, checked on a corpus at many limits: the result is an honest part of the original.

The slice takes some of the limits; `manage.py test --thorough` takes every one from 64 to 2,000.
"""

from __future__ import annotations

import json
import os

import pytest

from conversations.context.text import graphemes
from conversations.context.text.shorten import shorten
from tests.context.corpus import CLUSTERS, HTML, JSON, LOG, RIGHT_TO_LEFT, TABLE, TEXT
from tests.context.shortened import NOTICE, Pairs, borders, ends, is_cut, is_part, read
from tests.context.thorough import LIMITS

#: Where every text is made of whole clusters, what the pieces are.
PIECES = {
    "clusters": CLUSTERS * 400,
    "clusters and words": [piece for cluster in CLUSTERS * 90 for piece in (cluster, " ")][:-1],
    "flags": ["🇩🇪", "🇫🇷", "🇯🇵"] * 900,
    "jamo": ["\u1112\u1161\u11ab"] * 900,
    "windows lines": [piece for _ in range(400) for piece in (*"one line of it", "\r\n")],
}


def recall_at(limit: int) -> str:
    return "toolu_1" if limit % 2 else ""


@pytest.mark.parametrize("name", JSON)
def test_json_is_json_with_nothing_in_it_that_was_not_there(name: str) -> None:
    text = JSON[name]
    whole = read(text)
    for limit in LIMITS:
        short = shorten(text, limit, recall_at(limit))
        assert len(short) <= min(limit, len(text)), limit
        assert 5 * len(short) >= 2 * min(limit, len(text)), limit
        found = read(short)
        is_deep = name == "too deep"
        assert is_cut(found, text) if is_deep else is_part(found, whole), limit


@pytest.mark.parametrize("name", TEXT)
def test_text_is_within_every_limit_and_the_same_for_the_same(name: str) -> None:
    text = TEXT[name]
    for limit in LIMITS:
        short = shorten(text, limit, recall_at(limit))
        assert len(short) <= min(limit, len(text)), limit
        assert short == shorten(text, limit, recall_at(limit))
        assert (NOTICE.search(short) is not None) == (limit >= 256 and limit % 2 == 1)
        if name != "html":
            head, _, tail = ends(short)
            assert text.startswith(head)
            assert text.endswith(tail) or name == "log"


@pytest.mark.parametrize("name", PIECES)
def test_a_text_is_cut_between_what_a_reader_sees_as_characters(name: str) -> None:
    text = "".join(PIECES[name])
    allowed = borders(PIECES[name])
    for limit in LIMITS:
        head, _, tail = ends(shorten(text, limit, recall_at(limit)))
        # A line is cut before its end, which is two characters of one.
        is_line = text[len(head) : len(head) + 1] == "\n"
        assert len(head) in allowed or (is_line and len(head) + 1 in allowed), limit
        assert len(text) - len(tail) in allowed, limit


def test_json_texts_are_cut_between_clusters_too() -> None:
    allowed = borders(CLUSTERS * 20)
    for limit in LIMITS:
        for found in read(shorten(JSON["clusters"], limit)):
            if "…" in found and "items" not in found:
                head, _, tail = found.partition("…")
                assert len(head) in allowed
                tail = tail.rpartition("…")[2]
                assert len("".join(CLUSTERS * 20)) - len(tail) in allowed


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_cluster_may_be_cut_inside(cluster: str) -> None:
    text = "x" + cluster + "x"
    for at in range(2, 1 + len(cluster)):
        assert graphemes.find_cut_before(text, at) == 1
        assert graphemes.find_cut_after(text, at) == 1 + len(cluster)


def test_marks_of_direction_stay_with_a_text_that_is_json() -> None:
    whole = json.loads(JSON["right to left"])["text"]
    for limit in LIMITS:
        found = json.loads(shorten(JSON["right to left"], limit))["text"]
        assert is_cut(found, whole)
        assert found[:4] == RIGHT_TO_LEFT[:4]


def test_a_page_is_text_and_not_markup() -> None:
    for limit in LIMITS:
        short = shorten(HTML, limit, recall_at(limit))
        assert not {"<div", "<p>", "<script", "color:red", "track("} & set(short.split())
        assert "track(" not in short
        assert "<div" not in short
        assert "Openings" in short
        if limit >= 400:
            assert "Post 0 & more" in short
            assert "</jobs/0>" in short


def test_a_log_keeps_its_ends_and_what_went_wrong() -> None:
    first, last = LOG.split("\n")[0], LOG.split("\n")[-1]
    for limit in LIMITS:
        short = shorten(LOG, limit, recall_at(limit))
        if limit >= 400:
            assert short.startswith(first)
            assert last in short
        if limit >= 900:
            assert "ERROR disk full on /dev/sda1" in short
            assert "Traceback (most recent call last):" in short


def test_a_table_keeps_its_head_and_its_last_row_and_only_whole_rows() -> None:
    rows = set(TABLE.split("\n"))
    for limit in LIMITS:
        head, _, tail = ends(shorten(TABLE, limit, recall_at(limit)))
        if limit >= 100:
            assert head.startswith("id;name;pay\n")
            assert set(head.split("\n")) <= rows
        if limit >= 200:
            assert tail.endswith("900;last;1")
            assert set(tail.split("\n")) <= rows


@pytest.mark.parametrize("limit", [64, 99, 300, 1_000])
def test_what_is_said_about_an_object_takes_no_key_of_its_own(limit: int) -> None:
    value = {"…": "x" * 900, "……": ["y" * 900], **{f"k{n}": "z" * 40 for n in range(90)}}
    found = read(shorten(json.dumps(value), limit, "toolu_1"))
    assert isinstance(found, Pairs)
    keys = [key for key, _ in found]
    assert len(keys) == len(set(keys))
    assert is_part(found, read(json.dumps(value)))


def test_numbers_are_carried_as_they_were_written() -> None:
    found = read(shorten(JSON["huge numbers"], 1_900))
    assert found[0].startswith("9" * 100)
    assert found[2:6] == ["1e400", "0.1000", "-0", "1E+2"]
    assert found[-1] == "1"


def test_each_of_two_equal_keys_is_kept() -> None:
    found = read(shorten(JSON["doubled keys"], 400))
    assert [key for key, _ in found if key == "k"][:2] == ["k", "k"]
    assert found[0] == ("k", "0")


def test_a_thorough_run_takes_every_limit() -> None:
    every = range(64, 2_001)
    assert set(LIMITS) <= set(every)
    assert (len(LIMITS) == len(every)) == bool(os.environ.get("AGENTWEB_TEST_THOROUGH"))
