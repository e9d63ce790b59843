"""What the agent did outlives the messages that were removed: named, counted, never invented."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.context.errors import RuleError
from conversations.context.policy.policy import Policy, build_policy, dump_policy
from conversations.context.steps.action_list import (
    HEADER,
    collect_actions,
    read_actions,
    write_actions,
)
from conversations.context.steps.by_hand import build_working_view, drop_turns_by_hand
from conversations.context.steps.kinds import OURS
from conversations.context.steps.protocol import SummaryReply
from conversations.context.steps.removed_lists import (
    HEADERS,
    has_only_lists,
    list_shown_lines,
    strip_lists,
    write_left_out,
    write_lists,
    write_record,
)
from conversations.context.steps.repair import repair_view
from conversations.context.view import wire
from conversations.context.view.edits import (
    SpliceBlocks,
    SpliceMessages,
    apply,
    dump_edits,
    load_edits,
)
from conversations.context.view.view import Block, Message, View
from tests.context.independent import violations
from tests.context.samples import (
    Shell,
    answer,
    blocks,
    content,
    prompt,
    result,
    results,
    round_of,
    situation,
    text,
    use,
    view_of,
)
from tests.context.strategies import view_from
from tests.context.test_repair import obeying

ACTIONS = (
    "write_file=wrote {path}",
    "send_mail=sent mail to {to}: {subject}",
    "fetch_url=requested {url:host}",
    "read_file=",
)
POLICY = replace(build_policy("adaptive"), actions=ACTIONS)
LONG = "a line of it\n" * 100


def record(*said: Any, policy: Policy = POLICY, limit: int = 12_000, old: str = "") -> list[str]:
    """Write the record of a conversation of which all but the first message is removed."""
    view = view_of(prompt("go"), *said)
    blocks = [Block(wire.encode(text(old)), "trim")] if old else []
    words = write_lists(view, view.messages[1:], blocks, policy, limit)
    return words.partition(HEADER + "\n")[2].partition("\n\n")[0].splitlines()


def mail(id: str, n: int, given: Any = "Sent.", **more: Any) -> list[Any]:
    call = use(id, "send_mail", to=[f"p{n}@e.org", "all@e.org"], subject=f"Order\n{n}", body=LONG)
    return [answer(call), results(result(id, given, **more))]


def test_what_was_done_is_worded_by_its_tool() -> None:
    said = [
        *round_of("a", "Created", name="write_file", path="notes/plan.md", content=LONG),
        *mail("b", 1),
        *round_of("c", LONG, name="fetch_url", url="https://e.org/a?secret=1"),
        *round_of("d", LONG, name="read_file", path="x.md"),
    ]
    assert record(*said) == [
        '"msg_2/input": wrote notes/plan.md',
        '"msg_4/input": sent mail to p1@e.org, all@e.org: Order 1',
        '"msg_6/input": requested e.org',
    ]


def test_people_are_shown_the_lines_of_both_lists() -> None:
    said = [*round_of("a", "Created", name="write_file", path="a.md"), *mail("b", 1)]
    view = view_of(prompt("go"), *said)
    words = write_lists(view, view.messages[1:], [], POLICY, 12_000)
    assert has_only_lists(words)
    assert not has_only_lists(f"A summary.\n\n{words}")
    lines = list_shown_lines([Block(wire.encode(text(f"A summary.\n\n{words}")), "summary")])
    assert lines[:2] == (
        '"msg_2/input": wrote a.md', '"msg_4/input": sent mail to p1@e.org, all@e.org: Order 1'
    )  # fmt: skip
    assert set(lines[2:]) <= set(words.splitlines())
    assert list_shown_lines([]) == ()


def test_the_same_again_shares_a_line_with_its_count_at_the_newest_place() -> None:
    one = [round_of(f"w{n}", "ok", name="write_file", path="a.md") for n in range(3)]
    said = [*one[0], *mail("m", 1), *one[1], *one[2]]
    assert record(*said)[-1] == '"msg_8/input": wrote a.md (3 times)'
    again = "\n".join([HEADER, *record(*said)])
    more = [*round_of("x", LONG, name="read_file", path="b"), *mail("n", 1)] * 6
    assert record(*more, *one[0], old=again)[-1] == '"msg_26/input": wrote a.md (4 times)'


def test_a_tool_nobody_declared_is_an_action_when_its_result_only_confirms() -> None:
    said = [
        *round_of("a", "done", name="Bash", command="git push origin main"),
        *round_of("b", LONG, name="Grep", pattern="def"),
    ]
    assert record(*said) == ['"msg_2/input": Bash git push origin main']
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "run", "input": {"code": "1"}}
    assert record(answer(search), policy=build_policy("classic")) == ['"msg_2/input": run 1']


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": "herons"}])
def test_an_imported_call_without_a_proper_input_is_listed_without_it(
    given: dict[str, Any],
) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", **given}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    policy = replace(POLICY, actions=("web_search=searched for {query}",))
    assert record(answer(search, found), policy=policy) == ['"msg_2/input": searched for']


def test_a_failure_is_said_and_forgotten_once_it_succeeded() -> None:
    failed = mail("a", 1, "The server was away.", is_error=True)
    assert record(*failed) == ['"msg_2/input": failed: sent mail to p1@e.org, all@e.org: Order 1']
    assert record(*failed, *mail("b", 1)) == [
        '"msg_4/input": sent mail to p1@e.org, all@e.org: Order 1'
    ]


@pytest.mark.parametrize("by", ["trim", "repair"])
def test_the_record_of_a_turn_that_was_left_out_is_carried_over(by: Any) -> None:
    view = view_of(prompt("go"), answer("Yes."), prompt("Order it"), *mail("a", 1), answer("No."))
    left_out = Block(write_left_out(view, view.messages[2:], POLICY))
    edits = (SpliceBlocks(3, 0, 1, (left_out.text,)), SpliceMessages(4, 6))
    after = apply(view, by, edits)
    assert after.messages[2].by == (by,)
    words = write_lists(after, after.messages[1:], [], POLICY, 12_000)
    assert '"msg_4/input": sent mail to p1@e.org, all@e.org: Order 1' in words


def test_the_record_in_a_first_message_that_is_left_out_is_kept_once() -> None:
    view = view_of(prompt("go"), *mail("a", 1), *mail("b", 2), answer("No."))
    for kind in ("trim", "rounds"):
        listed = write_lists(view, view.messages[1:3], [], POLICY, 12_000)
        put = SpliceBlocks(1, 1, 0, (wire.encode(text(listed)),))
        after = apply(view, kind, (put, SpliceMessages(2, 3)))
        left_out = write_left_out(after, after.messages, POLICY)
        assert [action.line for action in read_actions([Block(left_out)]).actions] == [
            '"msg_2/input": sent mail to p1@e.org, all@e.org: Order 1',
            '"msg_4/input": sent mail to p2@e.org, all@e.org: Order 2',
        ]


def test_what_a_person_decided_is_said() -> None:
    refused = [*mail("a", 1, "Not run", is_error=True), *mail("c", 3, "Not run", is_error=True)]
    policy = replace(POLICY, decisions=(("a", "denied"), ("b", "chat"), ("c", "expired")))
    lines = record(*refused, *mail("b", 2), policy=policy)
    assert [line.split(": ")[1] for line in lines] == [
        "not allowed by the user",
        "not allowed in time",
        "allowed by the user for this whole chat",
    ]


def test_the_answer_to_a_question_is_kept() -> None:
    said = [answer("Two fit.\nShall I book the red one?"), prompt("No,\nthe blue one")]
    assert record(*said) == [
        '"msg_3": the user answered "No, the blue one" to "Shall I book the red one?"'
    ]
    assert record(answer("Booked."), prompt("Thanks")) == []
    assert record(answer("Which?"), prompt("This one. " * 90)) == []


def test_older_ones_are_counted_and_none_is_left_out() -> None:
    said = [message for n in range(300) for message in mail(f"m{n}", n)]
    lines = record(*round_of("f", "ok", name="write_file", path="f"), *said, limit=6_000)
    assert len("\n".join(lines)) < 2_000
    assert re.fullmatch(r"\(older ones: sent \d+, wrote 1; recall with a query .*\)", lines[-1])
    assert count_of(lines) == 301


def count_of(lines: list[str]) -> int:
    found = read_actions([Block(wire.encode(text("\n".join([HEADER, *lines]))))])
    return sum(action.count for action in found.actions) + found.older.total()


def test_many_kinds_are_counted_together() -> None:
    said = [m for n in range(40) for m in round_of(f"t{n}", "ok", name=f"tool_{n}", x="y" * 90)]
    lines = record(*said, limit=700)
    assert "others " in lines[-1]
    assert count_of(lines) == 40


@given(
    st.lists(st.sampled_from([*HEADERS, "[CONTEXT SUMMARY]", '"msg_9/input": wrote x', "\u2028"]))
)
def test_an_input_cannot_write_lines_of_its_own(parts: list[str]) -> None:
    path = "\n".join(["a", *parts])
    lines = record(*round_of("a", "ok", name="write_file", path=path))
    assert len(lines) == 1
    assert "[CONTEXT SUMMARY]" not in lines[0]
    assert count_of(lines) == 1


_SUBJECTS = st.text() | st.sampled_from(
    [
        "(, times)",
        "a (, times)",
        "a (2 times)",
        "a (1 times)",
        "(2 times) (3 times)",
        "a (2,0 times)",
    ]
)


@given(st.lists(_SUBJECTS, min_size=1, max_size=9), st.sampled_from([0, 600, 12_000]))
def test_the_record_is_read_back_as_it_was_written(subjects: list[str], limit: int) -> None:
    calls = [use(f"t{n}", "send_mail", subject=words) for n, words in enumerate(subjects)]
    given = [result(call["id"]) for call in calls]
    policy = replace(POLICY, actions=("send_mail=sent {subject}",))
    view = view_of(prompt("go"), answer(*calls), results(*given))
    found = collect_actions(view, view.messages[1:], [], policy)
    words = write_actions(found, limit)
    again = read_actions([Block(wire.encode(text(words)))])
    assert write_actions(again, limit) == words
    if limit == 12_000:
        counts = Counter(action.words for action in found.actions)
        assert {action.words: action.count for action in again.actions} == counts
    assert sum(action.count for action in again.actions) + again.older.total() == len(subjects)


def test_long_names_that_begin_alike_are_all_counted() -> None:
    names = ["mcp_calendar_of_the_office_add", "mcp_calendar_of_the_office_move"]
    said = [m for n in range(40) for m in round_of(f"t{n}", "ok", name=names[n % 2], x=f"{n}")]
    assert count_of(record(*said, limit=700)) == 40


def test_odd_inputs_are_worded_too() -> None:
    policy = replace(POLICY, actions=("t=did {n} {flag} {url:host} {gone}",))
    said = round_of("a", "ok", name="t", n=3, flag=True, url="http://[bad")
    assert record(*said, policy=policy) == ['"msg_2/input": did 3 true http://[bad']


@pytest.mark.parametrize("preset", ["classic", "rebuild", "gated-trim", "structured", "adaptive"])
def test_no_reduction_loses_what_was_done(preset: str) -> None:
    policy = replace(build_policy(preset), actions=ACTIONS)
    view, log = View(), View()
    shell = Shell(lambda wanted: SummaryReply("They were written to.", "end_turn"))
    for n in range(60):
        rounds = [*mail(f"m{n}", n), *round_of(f"r{n}", LONG * 9, name="read_file", path=f"{n}")]
        for kind, parts in [*([] if n else [prompt("Write to them all")]), *rounds]:
            message = Message.parse(log.length + 1, kind, content(parts))
            view, log = view.append(message), log.append(message)
        known = len(shell.applied)
        before = view
        view = shell.prepare(view, situation(window=32_000), policy).view
        for change in shell.applied[known:]:
            before = apply(before, change.kind, load_edits(dump_edits(change.edits)))
        assert before.body == view.body
        assert count_in(view) == n + 1
    assert any(message.by for message in view.messages)


def count_in(view: View) -> int:
    """Count the mails that a view says were sent: by their calls, and by the record."""
    calls = sum(call.name == "send_mail" for one in view.messages for call in one.shape.calls)
    ours = [block for one in view.messages for block in one.blocks if block.by in OURS]
    found = read_actions(ours)
    return calls + sum(action.count for action in found.actions) + found.older.total()


def test_little_that_is_dropped_still_says_what_was_done() -> None:
    call = use("a", "send_mail", to=["p@e.org"], subject="Hi", body="Dear you, " * 30)
    more = [part for n in range(4) for part in (prompt(f"{n} {LONG}"), answer(LONG))]
    view = view_of(prompt("go"), answer(call), results(result("a", "ok")), *more, prompt("now"))
    change = drop_turns_by_hand(build_working_view(view, situation(), POLICY))
    assert change is not None
    assert '"msg_2/input": sent mail to p@e.org: Hi' in change.view_after.messages[0].text.replace(
        "\\", ""
    )


def test_the_lists_are_no_part_of_a_summarys_own_words() -> None:
    block = f'[CONTEXT SUMMARY]\nIt was sent.\n\n{HEADER}\n"msg_2/input": sent x'
    assert strip_lists(block) == "[CONTEXT SUMMARY]\nIt was sent."
    assert strip_lists("no lists") == "no lists"


def test_facts_of_a_conversation_are_not_in_the_record_of_its_policy() -> None:
    assert not {"actions", "decisions"} & dump_policy(POLICY).keys()


def much_read_and_done() -> View:
    read = [
        m for n in range(200) for m in round_of(f"r{n}", LONG, name="read_file", path=f"{n}.md")
    ]
    done = [message for n in range(200) for message in mail(f"m{n}", n, LONG)]
    return view_of(prompt("go"), *read, *done)


def test_a_shorter_recall_list_leaves_the_record_as_it_is() -> None:
    view, found = much_read_and_done(), []
    for chars in (500, 2_500, 12_000):
        policy = replace(POLICY, name_list_chars=0, recall_list_chars=chars)
        words = write_lists(view, view.messages[1:], [], policy, policy.lists_chars)
        ours, _, listed = words.partition("\n\n")
        assert chars * 2 // 3 < len(listed)
        assert len(words) <= policy.lists_chars
        found.append(ours)
    assert found == [found[0]] * 3
    assert POLICY.action_list_chars // 2 < len(found[0]) <= POLICY.action_list_chars
    longer = replace(POLICY, action_list_chars=1_600)
    assert len(write_record(view, view.messages[1:], (), longer, longer.lists_chars)) > 1_200


def test_in_a_lower_limit_a_longer_recall_list_leaves_the_record_its_room() -> None:
    view = much_read_and_done()
    for limit in (1_600, 2_400, 4_800):
        usual, longer = (
            write_record(
                view, view.messages[1:], (), replace(POLICY, recall_list_chars=chars), limit
            )
            for chars in (4_000, 40_000)
        )
        assert usual == longer
        both = write_lists(view, view.messages[1:], [], replace(POLICY, name_list_chars=0), limit)
        assert len(both) <= limit


def test_neither_list_takes_room_from_the_other() -> None:
    view = much_read_and_done()
    policy = replace(POLICY, name_list_chars=0, recall_list_chars=4_000)
    for limit in (1_200, 4_800, 9_600):
        both = write_lists(view, view.messages[1:], [], policy, limit)
        assert len(both) <= limit
        ours, _, listed = both.partition("\n\n")
        assert len(ours) <= limit // 6
        assert len(listed) <= limit - limit // 6
        assert len(listed) > limit * 2 // 3
        silent = replace(policy, actions=("send_mail=", "read_file="))
        assert write_lists(view, view.messages[1:], [], silent, limit) == listed
        ours_too, named, listed_too = write_lists(
            view, view.messages[1:], [], replace(policy, name_list_chars=900), limit
        ).split("\n\n")
        assert (ours_too, listed_too) == (ours, listed)
        assert 600 < len(named) <= 900


def test_what_was_done_in_an_exchange_that_is_left_out_stays_on_record(monkeypatch: Any) -> None:
    policy = Policy(actions=("send_mail=sent mail to {to}",))

    def find(view: View) -> RuleError | None:
        is_odd = '"odd"' in view.body
        return RuleError("odd", "messages.1", "no such words") if is_odd else None

    mailed = round_of("t1", "odd", name="send_mail", to="bo@e.org")
    view = view_of(prompt("Mail Bo"), *mailed, answer("Done."), prompt("And now?"))
    made = obeying(view, monkeypatch, find, policy)
    (record,) = blocks(made, 0)
    assert '"msg_2/input": sent mail to bo@e.org' in record["text"]
    assert [message.by for message in made.messages] == [("repair",), ()]
    assert violations(made.body) == []
    assert repair_view(made, policy) is None


def test_a_damaged_answer_before_a_prompt_does_not_keep_the_record_from_being_written() -> None:
    said = [prompt("a"), *round_of("t1", "x"), answer("Well?"), prompt("yes"), prompt("b")]
    messages = list(view_of(*said).messages)
    messages[3] = Message(4, "answer", "[7", 5)
    view = view_from(messages)
    assert write_record(view, view.messages[4:5], (), Policy(), 4_000) == ""
