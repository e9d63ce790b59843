"""Searching texts by words: rare ones count most; case and script do not matter; it is linear."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.text.lower_case import Places, lower_text
from tools.text.ranking import MOST_WORDS, Ranking, read_words


def best(query: str, *texts: str, most: int = 3, context: str = "") -> list[int]:
    ranking = Ranking(query, context)
    for at, text in enumerate(texts):
        ranking.add(str(at), text)
    return [int(row.key) for row in ranking.list_best(most)]


def test_a_rare_word_counts_more_than_many_common_ones() -> None:
    common = "the order of the customer is late " * 5
    assert best("order of customer 4711", *[common] * 9, "see 4711") == [9, 8, 7]


NOTES = [f"a note about {name}" for name in ("heron", "larks", *["rains"] * 20)]


def test_a_query_that_says_little_is_ranked_by_what_was_said_around_it() -> None:
    assert best("note", *NOTES) == [21, 20, 19]
    assert best("note", *NOTES, context="The heron?")[0] == 0
    assert best("note 4711", *NOTES, context="The heron?")[0] == 0


def test_a_query_that_says_something_is_not_changed_by_what_was_said() -> None:
    texts = (*NOTES, "a note about heron larks", "a note about heron rains")
    for query in ("heron", "note heron", "larks rains"):
        assert best(query, *texts, context="The larks?") == best(query, *texts)


def test_a_folder_of_many_parts_says_little() -> None:
    folder = "srv/build/vendor/lib/tools"
    texts = [f"read /{folder}/{name}.py" for name in ("heron", *["rains"] * 9)]
    texts += ["read a note"] * 11
    assert best(f"read /{folder}/", *texts) == [9, 8, 7]
    assert best(f"read /{folder}/", *texts, context="The heron?")[0] == 0


def test_what_was_said_finds_nothing_that_the_query_does_not() -> None:
    assert 22 not in best("note", *NOTES, "heron", most=30, context="heron")
    assert best("zebra", *NOTES, context="heron") == best("note", context="heron") == []


def test_words_in_one_place_come_before_words_that_are_scattered() -> None:
    filler = "nothing of it here " * 60
    assert best("deadline offer", f"offer deadline {filler}", f"deadline {filler} offer")[0] == 0


def test_paths_names_and_their_parts_are_found() -> None:
    texts = ("see src/app/main.py", "src/lib/main.py", "a readme")
    assert best("src/app/main.py", *texts)[0] == 0
    assert best("MAIN.PY", *texts) in ([0, 1], [1, 0])
    assert read_words("(src/app/main.py)") == ("src/app/main.py", "src", "app", "main", "py")


def test_parts_of_an_identifier_are_searched_too() -> None:
    assert read_words("newHTTPClient") == ("newhttpclient", "new", "http", "client")
    texts = ("a client for HTTP, new", "renewal of a lease", "const x = 1")
    assert best("newHTTPClient", *texts)[0] == 0
    assert read_words("isX") == ("isx",)


def test_of_texts_with_the_same_mark_the_best_is_listed() -> None:
    ranking = Ranking("heron nests")
    for key, text, marks in (
        ("input", "heron", ("call",)),
        ("result", "heron nests", ("call", 7)),
        ("copy", "heron nests here", (7,)),
        ("other", "nests", ()),
    ):
        ranking.add(key, text, 1.0, marks)
    assert [row.key for row in ranking.list_best(3)] == ["result", "other"]
    assert len(ranking.list_all()) == 4
    assert [row.key for row in ranking.list_best(1)] == ["result"]


def rank_versions(query: str, *changes: str) -> list[tuple[str, tuple[str, ...]]]:
    """Rank versions of a page, one for each change, and another text; return keys and copies."""
    ranking = Ranking(query)
    page = " ".join(f"word{number}" for number in range(60))
    for at, change in enumerate(changes):
        ranking.add(str(at), f"{page} heron {change}")
    ranking.add("other", "elsewhere " * 40 + "heron")
    return sorted((row.key, row.copies) for row in ranking.list_best(3))


def test_near_copies_are_one_entry_that_names_the_latest_of_them() -> None:
    assert rank_versions("heron", *"wxyz") == [("3", ("2", "1")), ("other", ())]


def test_texts_are_no_copies_where_the_query_tells_them_apart() -> None:
    assert rank_versions("heron q7", "q7", "q8") == [("0", ()), ("1", ()), ("other", ())]


def test_texts_are_no_copies_if_their_words_differ_or_are_few() -> None:
    different = [" ".join(f"{letter}{number}" for number in range(40)) for letter in "xy"]
    assert rank_versions("heron", *different) == [("0", ()), ("1", ()), ("other", ())]
    assert best("heron", "a heron nests", "a heron nests") == [1, 0]


@pytest.mark.parametrize("query", ["締切はいつ", "마감일", "กำหนดส่ง"])
def test_scripts_without_spaces_are_searched(query: str) -> None:
    texts = ("東京大学の締切は六月です", "다음 마감일은 유월", "วันกำหนดส่งคือ", "nothing")
    assert best(query, *texts)[:1] in ([0], [1], [2])
    assert best("zebra", *texts) == []


def test_of_japanese_the_words_are_searched_and_not_the_endings() -> None:
    assert read_words("プロバイダーを分割しますか") == ("プロバイダー", "分割")
    assert read_words("1ファイルに全てAPIの") == ("ファイル", "全", "api")
    assert read_words("りんご の価格") == ("りん", "んご", "価格")
    assert read_words("佐々木さんの二〇二六年") == ("佐々", "々木", "二〇", "〇二", "二六", "六年")
    assert read_words("いつ") == ("いつ",)
    endings = "していますか、しないのですか。"
    assert best("設計を分割していますか", *[endings] * 3, "分割した") == [3]


def test_a_word_of_another_script_is_searched_without_what_korean_or_thai_adds_to_it() -> None:
    assert read_words("Python에서 API를 호출") == ("python", "에서", "api", "를", "호출")
    assert read_words("한국어API설정") == ("한국", "국어", "api", "설정")
    assert read_words("ใช้API") == ("ใช", "api")
    assert best("Python에서", "다른 글", "Python은 언어") == [1]


def test_what_an_agent_announces_is_no_word_of_a_search() -> None:
    assert read_words("Now let me look at the parser, which may need it") == ("parser",)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("invoices", "an invoice"),
        ("Rechnungen", "eine Rechnung"),
        ("Überweisungen", "eine U\u0308berweisung"),
    ],
)
def test_a_word_that_no_text_has_is_searched_in_another_form(asked: str, text: str) -> None:
    assert best(asked, "nothing", text) == [1]
    assert best(asked, text, f"{asked}, exactly") == [1]
    assert best("zebra", "zebu") == []


def test_a_word_is_found_however_its_accents_are_written() -> None:
    texts = ("Übersicht", "U\u0308bersicht", "nothing")
    for asked in texts[:2]:
        assert sorted(best(asked, *texts)) == [0, 1]
    assert read_words("U\u0308bersicht") == ("übersicht",)


def find_passage(query: str, text: str) -> str:
    ranking = Ranking(query)
    for key in "xyz":
        ranking.add(key, "services, files")
    ranking.add("a", text)
    return next(row.passage for row in ranking.list_all() if row.key == "a")


def test_the_passage_is_where_the_rare_words_stand() -> None:
    text = f"services, files {'- ' * 400}herons{' -' * 40}"
    assert "herons" in find_passage("services files herons", text)


@pytest.mark.parametrize("between", [157, 175])
def test_the_passage_shows_all_words_that_it_is_chosen_for(between: int) -> None:
    far = f"heron{' -' * between} nests {'- ' * 400}"
    text = f"{'- ' * 100}{far}nests {'- ' * 40}heron{' -' * 400}{far}"
    found = find_passage("heron nests", text)
    assert "heron" in found
    assert "nests" in found


def test_a_word_may_be_longer_than_a_passage() -> None:
    word = "heron" * 99
    assert "heron" * 60 in find_passage(word, f"{'- ' * 400}{word}")


def test_the_passage_is_where_the_words_stand() -> None:
    ranking = Ranking("heron nests")
    ranking.add("a", "x " * 900 + "Here the heron nests in June." + " y" * 900)
    [found] = ranking.list_best(1)
    assert "the heron nests in June." in found.passage
    assert len(found.passage) <= 400


def test_common_words_alone_are_a_query_too() -> None:
    assert read_words("who is it") == ("who", "is", "it")
    assert best("what is it", "so it is", "no") == [0]
    assert read_words(" ,;() ") == ()


@given(st.text(max_size=2_000), st.lists(st.text(max_size=500), max_size=5))
def test_any_query_and_text_can_be_given(query: str, texts: list[str]) -> None:
    assert len(read_words(query)) <= MOST_WORDS
    found = best(query, *texts, most=9)
    assert len(found) == len(set(found)) <= len(texts)


@given(st.text())
def test_lower_case_moves_nothing(text: str) -> None:
    assert len(lower_text(text)) == len(text)
    assert lower_text(text.upper()) == lower_text(lower_text(text.upper()))


class Counted(str):
    """A text that counts the characters that were looked through for others."""

    __slots__ = ("seen",)

    def find(self, *given: Any) -> int:
        at, start = super().find(*given), int((*given, 0)[1])
        self.seen = getattr(self, "seen", 0) + (at if at >= 0 else len(self)) - start
        return at


def test_of_two_texts_each_is_looked_for_once_however_often_the_other_is_found() -> None:
    text = Counted("a " * 1_000 + "b")
    places, start, ends = Places(text, ("b", "a")), 0, list[int]()
    while place := places.find_first(start):
        start = place[1]
        ends.append(start)
    assert ends == [*range(1, 2_000, 2), len(text)]
    assert text.seen <= 2 * len(text)
