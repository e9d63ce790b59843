"""Search: one's own words are found, as they were said and as they are typed, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from conversations.context.view import wire
from conversations.library.conversations import (
    archive_conversation,
    delete_conversation,
    rename_conversation,
    restore_conversation,
)
from conversations.library.search import PAGE, SearchResult, cut_excerpt, search_messages
from conversations.log import search_terms
from conversations.log.search_index import install_index, reindex_conversations
from conversations.models import Conversation, Message, SearchText, User
from conversations.transfer.importing import import_recording
from conversations.transfer.recordings import parse_recording
from tests.support import people_and_turns, stored_turns

pytestmark = pytest.mark.django_db


def talk(owner: User, *texts: str, title: str = "Talk", name: str = "") -> Conversation:
    """Store a conversation of prompts and answers by turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    name = name or f"r{Conversation.objects.count()}"
    recording = parse_recording({"id": name, "title": title, "messages": messages})
    return import_recording(user=owner, recording=recording, model=stored_turns.MODEL)


def seqs(owner: User, question: str, **options: bool) -> list[int]:
    return [row.seq for row in search_messages(owner, question, **options).rows]  # type: ignore[arg-type]


def marked(row: SearchResult) -> list[str]:
    return [piece.text for piece in (*row.title, *row.excerpt) if piece.is_hit]


SAID = "Der Bäcker in der Straße verkauft 12 Brötchen, C++ und foo_bar für 3.50 €"
FINDS = [
    ("bäcker", True), ("BACKER", True), ("bac", True), ("äcker", False), ("strasse", True),
    ("Straße", True), ("brot", True), ("c++", True), ("foo_bar", True), ("foo_ba", True),
    ("bar_foo", False), ('"verkauft 12 brötchen"', True), ('"12 verkauft"', False),
    ('"verkauft 12 brot"', False), ("12 verkauft", True), ("verkauft pizza", False), ("3.50", True),
    ("verkauft 12 bro", True), ('"der bäcker" "der straße"', True), ('"der bäcker" pizza', False),
]  # fmt: skip


@pytest.mark.parametrize(("question", "is_found"), FINDS)
def test_words_beginnings_and_phrases_are_found(question: str, is_found: bool) -> None:
    owner = people_and_turns.person()
    talk(owner, SAID)
    assert seqs(owner, question) == ([1] if is_found else [])


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("明日は東京タワーに行きます。", "京タワー"), ("我喜歡吃蘋果和香蕉", "蘋果"),
        ("한국어로 이야기합시다", "국어"),
        ("สวัสดีครับผมชื่อจอห์น", "ครับ"), ("नमस्ते दुनिया", "दुनि"), ("Привет, МИР ёлки", "мир елк"),
        ("مرحبا بالعالم", "بالعا"), ("שלום עולם", "עול"),
        ("ﬁnally ＦＵＬＬ ﾃｽﾄ", "final full テスト"),
        ("𠮷野家で食べる", "野家"),
    ],
)  # fmt: skip
def test_other_scripts_are_found(said: str, question: str) -> None:
    owner = people_and_turns.person()
    talk(owner, said)
    talk(owner, "something else")
    (row,) = search_messages(owner, question).rows
    assert marked(row)


def test_a_part_of_a_text_without_spaces_that_is_not_there_is_not_found() -> None:
    owner = people_and_turns.person()
    talk(owner, "明日は東京タワーに行きます。")
    assert seqs(owner, "京都") == []


HOSTILE = [
    "", " ", '"', '""', "'", "'' OR 1=1 --", "*", "a*", "-x", "NOT x", "x AND", "x OR", "NEAR(x y)",
    "words:x", "{words}: x", "^x", "x + y", "(x", ")", "x:*", "!x", "x & | y", "<->", "\\", "\\'x",
    "x'y", "%", "_", "%%%%_" * 1000, ".*", "[a-z]+", "x" * 5000, "x " * 5000, '"' * 999,
    "\x00x\x00",
    "\ud800x", "\u202ex", "𝕏" * 3000, "e\u0301" * 900, "\u0301", "ʼ", "x\ny\tz", "$1 %s {0} %(x)s",
    '"x" "', "🎉", "1e999", "0x7f", "a\u00adb", "İ", "ß" * 500, "\U000e0041", "﷽",
]  # fmt: skip


@pytest.mark.parametrize("question", HOSTILE)
def test_no_question_is_an_error(question: str) -> None:
    owner = people_and_turns.person()
    talk(owner, "x y z, plain words")
    page = search_messages(owner, question, after=question)
    assert all(row.excerpt or row.kind == "title" for row in page.rows)


@pytest.mark.parametrize("said", [*HOSTILE, "a" * 100_000, "ab " * 100_000, "字" * 30_000])
def test_no_text_is_an_error_and_what_was_said_is_found(said: str) -> None:
    owner = people_and_turns.person()
    talk(owner, f"begin {said} end", title=f"t {said}")
    assert seqs(owner, "begin") == [1]
    assert 1 in seqs(owner, "end")


def test_long_texts_are_cut_between_words_and_found_to_the_end() -> None:
    owner = people_and_turns.person()
    text = " ".join(f"word{at}" for at in range(30_000))
    talk(owner, text)
    parts = SearchText.objects.filter(kind="prompt").order_by("part")
    assert [row.part for row in parts] == [0, 1, 2]
    assert "".join(row.text for row in parts) == text
    assert seqs(owner, '"word29998 word29999"') == [1]
    assert seqs(owner, "word12345") == [1]


@pytest.mark.parametrize(
    ("common", "said", "questions"),
    [
        (
            "the cat sat on a mat. ", "In the end the quokka escaped",
            ('"the quokka"', "the-quokka", "end-the", "the-quo", '"the"'),
        ),
        ("今天天气很好的。", "我的猫跑了", ("我的猫", "的猫", "我的", '"猫"')),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [254, 255, 256, 257, 300, 1_200])
def test_phrases_are_found_behind_any_number_of_their_words(
    times: int, common: str, said: str, questions: tuple[str, ...]
) -> None:
    owner = people_and_turns.person()
    talk(owner, common * times + said)
    assert [seqs(owner, question) for question in questions] == [[1]] * len(questions)
    assert seqs(owner, '"the mat"') == seqs(owner, "猫的") == []


def test_titles_are_found_and_follow_a_new_name() -> None:
    owner = people_and_turns.person()
    conversation = talk(owner, "hello", title="Trip to Lisbon")
    assert [row.kind for row in search_messages(owner, "lisbon").rows] == ["title"]
    rename_conversation(conversation=conversation, title="Trip to Porto")
    assert seqs(owner, "lisbon") == []
    (row,) = search_messages(owner, "porto").rows
    assert (row.kind, marked(row)) == ("title", ["Porto"])


def test_only_ones_own_words_are_found() -> None:
    ada, eve = (
        people_and_turns.person(),
        people_and_turns.person("eve", is_superuser=True, is_staff=True),
    )
    talk(ada, "the secret word")
    assert seqs(ada, "secret") == [1]
    assert seqs(eve, "secret") == []
    SearchText.objects.update(owner=eve)
    assert seqs(eve, "secret") == []


def test_prompts_and_answers_are_found_but_not_the_working_papers() -> None:
    played = stored_turns.played(title="Read the ledger", result="a result about zebras")
    assert [row.kind for row in search_messages(played.user, "ledger").rows] == ["prompt", "title"]
    assert [row.kind for row in search_messages(played.user, "4711").rows] == ["answer"]
    assert seqs(played.user, "zebras") == []
    assert seqs(played.user, "notes.txt") == []


def test_words_of_another_branch_are_found() -> None:
    owner = people_and_turns.person()
    lease = people_and_turns.started_turn(owner, "the first question")
    people_and_turns.answered(lease)
    conversation = people_and_turns.conversation_of(lease)
    Conversation.objects.filter(pk=conversation.pk).update(tip=0)
    conversation.refresh_from_db()
    people_and_turns.next_turn(conversation, "the other question")
    assert len(seqs(owner, '"first question"')) == 2  # the prompt and the title
    assert seqs(owner, '"other question"') == [3]


def test_what_is_archived_is_asked_for_and_what_is_deleted_is_gone() -> None:
    owner = people_and_turns.person()
    conversation = talk(owner, "a walnut")
    archive_conversation(conversation=conversation, is_archived=True)
    assert seqs(owner, "walnut") == []
    assert seqs(owner, "walnut", archived=True) == [1]
    delete_conversation(conversation=conversation)
    assert seqs(owner, "walnut", archived=True) == []
    restore_conversation(conversation=conversation)
    assert seqs(owner, "walnut", archived=True) == [1]


def test_pages_hold_each_row_once_whatever_is_said_meanwhile() -> None:
    owner = people_and_turns.person()
    for at in range(3 * PAGE - 5):
        talk(owner, f"walnut number {at}")
    seen: list[str] = []
    after = ""
    for page_number in range(3):
        page = search_messages(owner, "walnut", after=after)
        seen += [row.conversation for row in page.rows]
        after = page.after
        talk(owner, f"walnut meanwhile {page_number}")
    assert after == ""
    assert len(seen) == len(set(seen)) == 3 * PAGE - 5


def test_a_page_costs_one_query() -> None:
    owner = people_and_turns.person()
    for at in range(30):
        talk(owner, f"walnut {at}", "walnut again")
    with CaptureQueriesContext(connection) as queries:
        assert len(search_messages(owner, "walnut").rows) == PAGE
    assert len(queries) == 1


def test_an_excerpt_shows_the_hit_in_the_middle_of_a_long_text() -> None:
    owner = people_and_turns.person()
    talk(owner, "before " * 500 + "the <b>walnut</b> tree " + "after " * 500)
    (row,) = search_messages(owner, "waln").rows
    text = "".join(piece.text for piece in row.excerpt)
    assert marked(row) == ["walnut"]
    assert "the <b>walnut</b> tree" in text
    assert len(text) < 320


def test_the_index_is_the_same_when_it_is_made_anew() -> None:
    played = stored_turns.played()
    talk(played.user, "a walnut", "yes", title="Nuts")

    def rows() -> list[object]:
        kept = ("conversation", "seq", "part", "kind", "text", "words", "owner", "at")
        return list(SearchText.objects.order_by(*kept[:3]).values_list(*kept))

    before = rows()
    assert reindex_conversations() == 2
    assert rows() == before
    assert seqs(played.user, "walnut") == [1]


def test_an_index_that_was_never_filled_is_filled_after_a_migration() -> None:
    owner = people_and_turns.person()
    talk(owner, "a walnut")
    SearchText.objects.all().delete()
    assert seqs(owner, "walnut") == []
    connection.check_constraints()  # PostgreSQL makes no index while checks wait
    install_index()
    assert seqs(owner, "walnut") == [1]


def test_a_message_and_its_index_are_one_transaction() -> None:
    owner = people_and_turns.person()
    with transaction.atomic():
        talk(owner, "a walnut")
        transaction.set_rollback(True)
    assert not Message.objects.exists()
    assert not SearchText.objects.exists()
    assert seqs(owner, "walnut") == []


def test_hits_lie_where_the_words_are() -> None:
    text = "L'été à Zürich: ZÜRICHSEE, zurich"
    wanted = search_terms.parse_query("zurich")
    assert [text[a:b] for a, b in search_terms.find_hits(text, wanted)] == [
        "Zürich",
        "ZÜRICHSEE",
        "zurich",
    ]
    assert wire.clean(text) == text


def test_a_text_is_cut_only_as_far_as_its_hits_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = 0
    whole = search_terms.split_terms

    def counted(text: str) -> Iterator[search_terms.Term]:
        nonlocal cut
        for term in whole(text):
            cut += 1
            yield term

    monkeypatch.setattr(search_terms, "split_terms", counted)
    wanted = (search_terms.Phrase(("walnut",), False), search_terms.Phrase(("a", "walnut"), False))
    shown = list(cut_excerpt("a walnut " * 5_000, wanted))
    assert sum(piece.is_hit for piece in shown) > 10
    assert 20 < cut < 200
