"""The recall list tells originals apart: mails by uid, parts of a report, deep paths, commands."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.policy.policy import PRESETS
from conversations.context.steps.action_list import collect_actions
from conversations.context.steps.recall_list import HEADER, list_lines, read_lines, write_list
from conversations.context.view import wire
from conversations.context.view.view import Block
from tests.context.samples import answer, prompt, result, round_of, text, use, view_of

FILLER = "\nSome more of it, as it is.\n" * 40


def mail(n: int) -> tuple[str, dict[str, Any], str]:
    text = f"From: person{n}@example.org\nSubject: Order {7_000 + n} is late\n{FILLER}"
    return "read_mail", {"folder": "INBOX", "uid": 4_000 + n}, text


def part(n: int) -> tuple[str, dict[str, Any], str]:
    text = f"Chapter {n}: on beds\n{FILLER}"
    return "read_file", {"path": "reports/survey.pdf", "start": n * 20_000}, text


def deep(n: int) -> tuple[str, dict[str, Any], str]:
    path = f"/home/ann/projects/web/{'deep/' * 9}module_{n}/views.py"
    return "read_file", {"path": path}, f"x = {n}{FILLER}"


def windows(n: int) -> tuple[str, dict[str, Any], str]:
    path = f"C:\\Users\\Ann Lee\\Documents\\Some Long Folder Name\\plan {n}.docx"
    return "read_file", {"path": path}, f"Plan {n}{FILLER}"


def shell(n: int) -> tuple[str, dict[str, Any], str]:
    return "run", {"command": "make test", "attempt": n}, f"{n} failed{FILLER}"


def listing(*calls: tuple[str, dict[str, Any], str]) -> str:
    rounds = [m for n, (name, given, text) in enumerate(calls)
              for m in round_of(f"t{n}", text, name=name, **given)]  # fmt: skip
    view = view_of(prompt("go"), *rounds)
    return write_list(list_lines(view, view.messages[1:]), 0, 12_000)


@pytest.mark.parametrize("make", [mail, part, deep, windows, shell])
def test_each_of_sixty_originals_has_a_line_of_its_own(make: Any) -> None:
    lines = listing(*map(make, range(60))).splitlines()[1:]
    assert len(lines) == len({line.partition(": ")[2] for line in lines}) == 60


def test_what_cannot_be_told_apart_by_inputs_is_told_apart_by_its_title() -> None:
    calls = [("next_mail", {"folder": "INBOX"}, mail(n)[2]) for n in range(60)]
    lines = listing(*calls).splitlines()[1:]
    assert lines[3] == '"msg_9": next_mail INBOX (Order 7003 is late)'
    assert len({line.partition(": ")[2] for line in lines}) == 60


def test_one_alone_needs_no_more_than_its_label() -> None:
    assert listing(mail(1)).splitlines()[1] == '"msg_3": read_mail INBOX'


def test_a_file_read_again_shares_a_line_that_counts_what_it_leaves_out() -> None:
    words = listing(*[("read_file", {"path": "a.md"}, "the same" + FILLER)] * 60)
    [line] = words.splitlines()[1:]
    assert line.startswith('"msg_111", "msg_113", ')
    assert line.endswith(" and 54 earlier: read_file a.md (the same)")
    found, older = read_lines([Block(wire.encode({"type": "text", "text": words}))])
    again = write_list([*found, '"msg_300": read_file a.md (the same)'], older, 12_000)
    assert " and 55 earlier: read_file a.md" in again


def test_a_result_in_blocks_has_a_title_too() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}
    parts = [image, {"type": "text", "text": "Receipt of May" + FILLER}]
    calls = [("scan", {}, parts), ("scan", {}, [image, image])]
    lines = listing(*calls).splitlines()[1:]  # type: ignore[arg-type]
    assert lines[0] == '"msg_3": scan (Receipt of May)'
    assert lines[1].startswith('"msg_5": scan')


def edit(n: int) -> tuple[str, dict[str, Any], str]:
    change = {"old": f'def f{n}():\n    pass\n"msg_99": x\n', "new": f"def g{n}():\n    pass"}
    return "edit_file", {"path": "src/a.py", **change}, "done" + FILLER * (1 + 9 * (n == 1))


def test_an_input_of_several_lines_is_written_on_one() -> None:
    lines = listing(*map(edit, range(3))).splitlines()[1:]
    assert lines == [
        '"msg_3": edit_file src/a.py old=def f0(): pass "msg_99": x new=def g0(): pass',
        '"msg_5": edit_file src/a.py old=def f1(): pass "msg_99": x new=def g1(): pass (long)',
        '"msg_7": edit_file src/a.py old=def f2(): pass "msg_99": x new=def g2(): pass',
    ]


_TEXTS = st.text() | st.sampled_from([HEADER, '\n"msg_9": x', "a (long)", ": b and 2 earlier: c"])


@given(st.lists(st.tuples(_TEXTS, _TEXTS, _TEXTS, _TEXTS), max_size=6))
def test_the_list_is_read_back_as_it_was_written(made: list[tuple[str, str, str, str]]) -> None:
    calls = [("t", {"path": path, key: other}, given) for path, key, other, given in made]
    words = listing(*calls)
    found, older = read_lines([Block(wire.encode(text(words)))])
    named = re.findall(r"msg_\d+", " ".join(line.partition(": ")[0] for line in found))
    assert sorted(named) == sorted(f"msg_{3 + 2 * n}" for n in range(len(made)))
    assert write_list(found, older, 12_000) == words


def test_few_long_results_are_listed_before_many_newer_ones() -> None:
    whole = ("read_file", {"path": "all/of/it.md"}, "the whole of it\n" + FILLER * 10)
    calls = [whole, *map(mail, range(400))]
    lines = listing(*calls).splitlines()[1:]
    assert lines[0] == '"msg_3": read_file all/of/it.md (long)'
    assert '"msg_803": read_mail INBOX' in lines[-2]
    assert lines[-1].endswith("older ones; recall with a query finds them)")
    # They may fill half of the list, not all of it.
    longs = [("read_file", {"path": f"{n}.md"}, f"{n}\n" + FILLER * 10) for n in range(300)]
    lines = listing(mail(0), *longs, *map(mail, range(1, 60))).splitlines()[1:-1]
    assert sum(line.endswith(" (long)") for line in lines) > 100
    assert sum("read_mail" in line for line in lines) == 59


def test_lines_of_older_versions_are_read_and_written_anew() -> None:
    older = f'{HEADER}\nrecall "msg_3", "msg_7" and 2 earlier: read_file a.md\nrecall "t1": clock'
    found, _ = read_lines([Block(wire.encode(text(older)), "summary")])
    assert write_list([*found, '"msg_9": read_file a.md'], 0).splitlines()[1:] == [
        'recall "t1": clock',
        '"msg_3", "msg_7", "msg_9" and 2 earlier: read_file a.md',
    ]


def served(n: int, query: str, content: Any) -> list[dict[str, Any]]:
    """Make a call of the API's own tool, and its result."""
    call = use(f"srv_{n}", "web_search", query=query) | {"type": "server_tool_use"}
    return [call, {**result(f"srv_{n}", content), "type": "web_search_tool_result"}]


def found(title: str) -> list[dict[str, Any]]:
    row = {"type": "web_search_result", "title": title, "url": "https://a.example"}
    return [row | {"encrypted_content": "SEALED" * 100}] * 9


def test_results_of_the_api_are_listed_with_their_answer() -> None:
    wrong = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    call, late = served(4, "egrets", "x" * 9_000)
    view = view_of(
        prompt("go"),
        answer(*served(1, "herons", found("Grey")), *served(2, "storks", wrong), "So."),
        answer(*served(3, "herons", found("White")), call),
        answer(late, "Done."),
    )
    assert list_lines(view, view.messages[1:]) == [
        '"msg_2": web_search herons (Grey)',
        '"msg_3": web_search herons (White)',
        '"msg_4": web_search egrets (long)',
    ]
    actions = collect_actions(view, view.messages[1:], [], PRESETS["adaptive"]).actions
    assert [action.line for action in actions] == ['"msg_2/input": failed: web_search storks']


def test_an_imported_call_of_the_api_without_name_and_input_is_no_obstacle() -> None:
    bare = {"type": "server_tool_use", "id": "srv_1"}
    view = view_of(prompt("go"), answer(bare, served(1, "", found("Grey"))[1], "So."))
    assert list_lines(view, view.messages[1:]) == ['"msg_2": server_tool_use']
