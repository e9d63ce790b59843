from __future__ import annotations

import json
import random
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.context.text import graphemes
from conversations.context.text.shorten import cut_head, cut_tail, preview_text, shorten
from tests.context.test_wire import values
from tools.html.to_compact_text import html_to_compact_text, is_html

CLUSTERS = [
    "e\u0301",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "👍🏽",
    "한",
    "\u1112\u1161\u11ab",
    "नि",
    "क्ष",
    "\r\n",
    "❤️",
    "a",
    "漢",
]
limits = st.integers(64, 400)


def whole_clusters(text: str) -> bool:
    """Say whether a text made of CLUSTERS holds only whole ones."""
    while text:
        known = [piece for piece in CLUSTERS if text.startswith(piece)]
        if not known:
            return False
        text = text[len(max(known, key=len)) :]
    return True


@settings(max_examples=150, deadline=None)
@given(values, limits)
def test_json_stays_json_at_every_limit(value: object, limit: int) -> None:
    text = json.dumps([value] * 3, indent=2)
    short = shorten(text, limit)
    assert len(short) <= min(limit, len(text))
    json.loads(short)
    assert shorten(text, limit) == short


@pytest.mark.parametrize(
    "value",
    [
        list(range(4_000)),
        [{"id": n, "text": "x" * n} for n in range(190)],
        {f"key {n}": "value " * n for n in range(60)},
        {"k" * 300: 1, "rest": [1] * 2_500},
        'a long text with "quotes" and\nlines ' * 190,
        [[["deep " * 1_500]]],
        {"…": 1, "a": "b" * 6_000, "……": 2},
        [["x" * 3_000], None, True, {"a": {"b": {"c": "d" * 3_000}}}],
        ["\ud800\udc00" * 900, "\ud800 " * 900, "🎉" * 900, "\u0001" * 900],
    ],
)
def test_large_json_keeps_its_kind(value: object) -> None:
    text = json.dumps(value)
    for limit in [*range(64, 200, 9), 400, 1_000, 5_000]:
        for recall in ("", "toolu_1"):
            short = shorten(text, limit, recall)
            assert len(short) <= limit < len(text)
            assert type(json.loads(short)) is type(value)


def test_arrays_keep_their_ends_and_objects_their_keys_in_order() -> None:
    for limit in (64, 99, 1_000):
        found = json.loads(shorten(json.dumps(list(range(9_000))), limit))
        assert (found[0], found[-1]) == (0, 8_999)
        left_out = next(item for item in found if isinstance(item, str))
        assert left_out == f"… {9_001 - len(found):,} items omitted …"
    value = {f"key {n}": "value " * n for n in range(60)}
    assert list(json.loads(shorten(json.dumps(value), 2_000))) == list(value)
    few = list(json.loads(shorten(json.dumps(value), 300)))
    kept = [key for key in few if key != "…"]
    assert kept == [key for key in value if key in kept]
    assert (kept[0], kept[-1], "…" in few) == ("key 0", "key 59", True)
    two = json.loads(shorten(json.dumps(["a" * 900, "b" * 900]), 64))
    assert [item[0] for item in two] == ["a", "b"]


def test_numbers_stay_as_they_were_written() -> None:
    text = (
        '{"a": 1.10, "big": 12345678901234567890123, "e": 1e400, "n": NaN, "pad": "'
        + "x" * 99
        + '"}'
    )
    assert shorten(text, 100).startswith(
        '{"a":1.10,"big":12345678901234567890123,"e":1e400,"n":NaN,'
    )
    assert shorten("[" + "9" * 500 + "]", 64).startswith('["999')
    assert shorten("9" * 500, 64).startswith('"999')
    assert json.loads(shorten("[" + ", ".join(["true", "false", "null"] * 50) + "]", 64))


def test_json_that_fits_without_its_white_space_loses_nothing() -> None:
    value = {"a": [1, 2], "b": None}
    assert json.loads(shorten(json.dumps(value, indent=40), 64, "toolu_1")) == value


def test_recall_is_said_as_data_in_json_and_as_a_notice_in_text() -> None:
    rows = json.loads(shorten(json.dumps(["x" * 50] * 100), 500, "toolu_1"))
    assert rows[-1] == '… shortened from 5,400 characters; recall "toolu_1" for the rest'
    found = json.loads(shorten(json.dumps({"a": "x" * 5_000}), 500, "toolu_1"))
    assert found["……"].endswith('recall "toolu_1" for the rest')
    words = json.loads(shorten(json.dumps("x" * 5_000), 500, "toolu_1"))
    assert words.endswith('recall "toolu_1" for the rest')
    text = shorten("word " * 1_000, 500, "toolu_1")
    assert text.endswith(' of 5,000 characters shown; recall "toolu_1" for the rest]')
    assert len(text) <= 500


def test_very_deep_json_becomes_a_json_text() -> None:
    for depth in (150, 100_000):
        short = shorten("[" * depth + "]" * depth, 100)
        assert json.loads(short).startswith("[[[")
        assert len(short) <= 100


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*CLUSTERS, "\n", " ", "x"]), max_size=400), limits)
def test_text_is_never_longer_and_clusters_stay_whole(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    short = shorten(text, limit)
    assert len(short) <= min(limit, len(text)) if len(text) > limit else short == text
    head, _, tail = short.partition("[… ")
    plain = [piece.replace("x", "").replace(" ", "").replace("\n", "") for piece in (head, tail)]
    assert whole_clusters(plain[0].replace("\r", ""))
    if tail:
        assert whole_clusters(
            tail.partition("…]\n")[2]
            .replace("x", "")
            .replace(" ", "")
            .replace("\r", "")
            .replace("\n", "")
        )


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_is_cut_before_or_after_and_never_inside(cluster: str) -> None:
    text = "x" + cluster + "x"
    inside = range(2, 1 + len(cluster))
    assert all(graphemes.find_cut_before(text, at) == 1 for at in inside)
    assert all(graphemes.find_cut_after(text, at) == 1 + len(cluster) for at in inside)
    assert (
        graphemes.find_cut_before(text, 99)
        == graphemes.find_cut_after(text, len(text))
        == len(text)
    )
    assert graphemes.find_cut_after(text, -1) == 0


def test_flags_are_cut_in_pairs_and_surrogates_not_at_all() -> None:
    flags = "🇩🇪🇫🇷🇯🇵"
    assert [graphemes.find_cut_before(flags, at) for at in range(7)] == [0, 0, 2, 2, 4, 4, 6]
    assert graphemes.find_cut_before("a\ud83d\ude00", 2) == 1
    assert graphemes.find_cut_before("\u1100\u1100\u1161", 1) == 0
    assert graphemes.find_cut_before("🇩漢", 1) == 1
    assert graphemes.find_cut_before("각\u11a8", 1) == 0
    assert unicodedata.combining("\u0301")


def test_head_and_tail_end_on_lines_and_words() -> None:
    lines = "\n".join(f"line {n} of it" for n in range(200))
    short = shorten(lines, 400)
    head, _, tail = short.partition("\n[… ")
    assert lines.startswith(head + "\n")
    assert lines.endswith("\n" + tail.partition("…]\n")[2])
    assert cut_head("some words in a row", 12) == "some words"
    assert cut_head("x" * 50, 10) == "x" * 10
    assert cut_tail("some words in a row", 6) == "a row"
    assert cut_tail("x" * 50, 10) == "x" * 10
    assert cut_tail("one\ntwo\nthree", 7) == "three"
    assert cut_head("short", 9) == cut_tail("short", 9) == "short"
    assert shorten("word " * 50, 20) == "word word word word "
    assert preview_text("x" * 700, 500, 200) == "x" * 700
    assert len(preview_text("x" * 7_000, 500, 200)) < 760


def test_a_log_keeps_the_lines_that_speak_of_errors() -> None:
    lines = [f"{n:04} GET /index 200" for n in range(2_000)]
    lines[1_000] = "1000 ERROR: disk full"
    lines[1_001] = "1001 failed " + "x" * 300
    lines[1_500] = "1500 Traceback (most recent call last)"
    short = shorten("\n".join(lines), 1_000)
    assert "\n1000 ERROR: disk full\n1500 Traceback (most recent call last)\n" in short
    assert short.startswith("0000 GET")
    assert short.endswith("1999 GET /index 200")
    assert len(shorten("\n".join(["an error is here"] * 900), 300)) <= 300
    assert len(shorten("\n".join([*["x"] * 90, *["y" * 500 + " error"] * 2, "z" * 90]), 200)) <= 200


def test_a_page_becomes_its_readable_text_with_its_links() -> None:
    page = (
        "<!doctype html><head><title>Jobs</title><style>p{}</style><script>if (a<b) x()</script>"
        '</head><body><!-- no --><h1>Senior&nbsp;.NET</h1><p>Remote, <a href="/j/1">details</a> '
        "and <a href='#top'>up</a> <a>bare</a></p><table><tr><td>500</td><td>700</td></tr></table>"
        "<svg/><p>end <b>bold</b> 1 < 2</p><noscript>x" + "<p>pad</p>" * 99
    )  # fmt: skip
    assert html_to_compact_text(page) == (
        "Jobs\nSenior .NET\nRemote, </j/1> details and up bare\n500 | 700 |\nend bold 1 < 2"
    )
    short = shorten(page, 300, "toolu_1")
    assert short.startswith("[HTML of ")
    assert "Senior .NET" in short
    assert len(shorten(page, 100)) <= 100
    assert html_to_compact_text("<p>open <!-- never closed") == "open"
    assert not is_html("<3 love")
    blank = "<div><script>" + "x" * 900
    assert shorten(blank, 100).startswith("<div><script>xx")


@pytest.mark.parametrize(
    "text",
    [
        "<" * 400_000, "<a " * 130_000, "<script>" * 50_000, "<!--" * 100_000, "[" * 400_000,
        '{"a":' * 80_000, "\u0301" * 200_000, "🇩" * 60_000, "error\n" * 80_000, '"' * 400_000,
        "<div>" + "<a href=" * 50_000, json.dumps([{"a": list(range(50))}] * 2_000),
        json.dumps({f"k{n}": ["x" * 40] * 20 for n in range(900)}), "x" * 400_000,
    ],
)  # fmt: skip
def test_shortening_is_linear_whatever_the_text(text: str) -> None:
    started = time.thread_time()
    for limit in (64, 40_000):
        assert len(shorten(text, limit, "toolu_1")) <= limit
    assert time.thread_time() - started < 10


def test_random_cuts_of_json_are_only_text() -> None:
    chance = random.Random(1)
    text = json.dumps({"rows": [{"id": n, "name": "x" * 20} for n in range(200)]})
    for _ in range(50):
        broken = text[: chance.randrange(1_000, len(text) - 1)]
        assert len(shorten(broken, 300)) <= 300
