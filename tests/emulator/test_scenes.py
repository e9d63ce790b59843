"""The scripted model decides only from what is in view, and says that it is an emulator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.samples import RESULT, TEXT, TOOL, USE, assistant, talk, user

NAMES = ("list_files", "read_file", "write_file", "fetch_url", "recall", "current_time")
OFFERED = [TOOL | {"name": name} for name in NAMES]


def words(answered: Any) -> str:
    assert answered.status == 200, answered.body
    return "\n".join(b["text"] for b in answered.json["content"] if b["type"] == "text")


def uses(answered: Any) -> list[tuple[str, dict[str, Any]]]:
    content = answered.json["content"]
    return [(b["name"], b["input"]) for b in content if b["type"] == "tool_use"]


@pytest.mark.parametrize("text", ["Who are you?", "hello", "help", "are you a real model?"])
def test_it_says_that_it_is_no_real_model(ask: Any, text: str) -> None:
    assert "built-in emulator: no real model" in words(ask.say(text))


def test_markdown_on_request_has_a_heading_a_list_code_and_a_table(ask: Any) -> None:
    text = words(ask.say("Show me some Markdown"))
    for mark in ("\n- ", "```python\n", "\n|---|", "## "):
        assert mark in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("list files", [("list_files", {})]),
        ("Please list the files in notes/2026", [("list_files", {"path": "notes/2026"})]),
        ("List the files in my workspace", [("list_files", {})]),
        ("list files in the folder notes", [("list_files", {"path": "notes"})]),
        ("read notes.txt", [("read_file", {"path": "notes.txt"})]),
        (
            "read `a/b.md` and read c.txt",
            [("read_file", {"path": "a/b.md"}), ("read_file", {"path": "c.txt"})],
        ),
        (
            "write poem.txt with content Roses are red",
            [("write_file", {"path": "poem.txt", "content": "Roses are red\n"})],
        ),
        ("fetch https://a.example/x?y=1.", [("fetch_url", {"url": "https://a.example/x?y=1"})]),
        ("what time is it in Europe/Berlin?", [("current_time", {"zone": "Europe/Berlin"})]),
        ("What time is it in Tokyo?", [("current_time", {"zone": "Asia/Tokyo"})]),
        ("what time is it in New York?", [("current_time", {"zone": "America/New_York"})]),
        ("what time is it in Nowhere?", [("current_time", {})]),
        (
            "Write a file ideas.md with three ideas for a walk",
            [
                (
                    "write_file",
                    {
                        "path": "ideas.md",
                        "content": "1. Idea 1 for a walk\n2. Idea 2 for a walk\n"
                        "3. Idea 3 for a walk\n",
                    },
                )
            ],
        ),
        (
            "recall toolu_01AbC matching day rate",
            [("recall", {"id": "toolu_01AbC", "matching": "day rate"})],
        ),
        ("call unknown tool", [("launch_rocket", {"when": "now"})]),
        (
            'call tool read_file with {"path": "x.txt", "limit": 3}',
            [("read_file", {"path": "x.txt", "limit": 3})],
        ),
        (
            "use 3 tools at once",
            [
                ("current_time", {"zone": "UTC"}),
                ("list_files", {"path": ""}),
                ("current_time", {"zone": "UTC"}),
            ],
        ),
    ],
)
def test_tools_are_called_as_the_words_say(ask: Any, text: str, wanted: Any) -> None:
    answered = ask.say(text, tools=OFFERED)
    assert uses(answered) == wanted
    assert answered.json["stop_reason"] == "tool_use"


def test_ids_of_calls_differ_within_and_between_answers(ask: Any) -> None:
    answers = [ask.say("use 5 tools at once", tools=OFFERED).json for _ in range(2)]
    ids = [b["id"] for answer in answers for b in answer["content"] if b["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 10


def test_a_tool_that_is_not_offered_is_not_called(ask: Any) -> None:
    answered = ask.say("list files")
    assert uses(answered) == []
    assert "`list_files`, but that tool is not offered" in words(answered)


def test_results_are_told_in_short(ask: Any, body: Any) -> None:
    change = talk(user(TEXT), assistant(USE), user(RESULT | {"content": "line\n" * 400}))
    text = words(ask(body(**change)))
    assert "`read_file` returned 2,000 characters" in text
    assert len(text) < 600


def test_a_failed_result_is_told_as_failed(ask: Any, body: Any) -> None:
    change = talk(
        user(TEXT), assistant(USE), user(RESULT | {"content": "no such file", "is_error": True})
    )
    assert "`read_file` failed:\n\n> no such file" in words(ask(body(**change)))


def test_a_new_prompt_behind_results_is_answered_with_the_results(ask: Any, body: Any) -> None:
    change = talk(user(TEXT), assistant(USE), user(RESULT, {"type": "text", "text": "be quick"}))
    assert "`read_file` returned" in words(ask(body(**change)))


@pytest.mark.parametrize(
    ("text", "size"),
    [("Answer in 1 word", 1), ("Answer in 80 words", 80), ("Answer in 1,234 words", 1_234)],
)
def test_an_answer_has_the_number_of_words_asked_for(ask: Any, text: str, size: int) -> None:
    assert len(words(ask.say(text, max_tokens=9_000)).split()) == size


@pytest.mark.parametrize("size", [1, 80, 5_000, 100_000])
def test_an_answer_has_the_number_of_characters_asked_for(ask: Any, size: int) -> None:
    text = words(ask.say(f"Please answer this in {size} characters", max_tokens=90_000))
    assert len(text) == size


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Can you help me to plan a trip to Lisbon in May?", "Help plan trip Lisbon May"),
        ("Hi", "Hi with the emulator"),
        (
            "Execute the job search prompt from search-prompt.txt",
            "Execute job search prompt search-prompt.txt",
        ),
    ],
)
def test_a_title_has_three_to_six_words_of_the_user(ask: Any, text: str, title: str) -> None:
    order = "Write a short title for the conversation."
    said = words(ask.say(text, system=order, max_tokens=60, thinking={"type": "between_tools"}))
    assert said == title
    assert 3 <= len(said.split()) <= 6


def test_earlier_words_are_known_only_while_in_view(ask: Any, body: Any) -> None:
    asked = body(
        messages=[user(TEXT), assistant(TEXT), user({"type": "text", "text": "What did I say?"})]
    )
    assert "“Hello”" in words(ask(asked))
    assert words(ask.say("What did I say?")).startswith("I can't see that any more")
