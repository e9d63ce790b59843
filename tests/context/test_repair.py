"""Whatever breaks a view, one repair makes it legal, and a legal view is never touched."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from conversations.context.errors import RuleError
from conversations.context.policy.policy import Policy
from conversations.context.steps.open_calls import leave_out_open_calls
from conversations.context.steps.repair import MOST_ATTEMPTS, MOST_EXCHANGES, NOTES, repair_view
from conversations.context.steps.repair_blocks import NO_MESSAGE, NO_PART
from conversations.context.view import rules, wire
from conversations.context.view.edits import apply, dump_edits, load_edits
from conversations.context.view.view import Message, View
from tests.context.independent import violations
from tests.context.samples import (
    IMAGE,
    THOUGHT,
    Part,
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
from tests.context.strategies import Maker, seeds, view_from
from tests.context.test_laws import many
from tests.support import small_files

QUOTE = {"type": "char_location", "cited_text": "m", "document_index": 0}
#: What a synthetic result adds at most, in bytes.
RESULT = 300
WRONG: list[Any] = [
    7, None, "text", [], {}, {"type": 3}, {"type": "odd"}, {"type": "text"},
    {"type": "text", "text": ""}, {"type": "text", "text": " \n"}, {"type": "tool_use"},
    {"type": "tool_use", "id": "a b", "name": "x", "input": {}},
    {"type": "tool_use", "id": "ok", "name": "x", "input": []},
    {"type": "tool_result", "tool_use_id": "nobody", "content": "?"},
    {"type": "tool_result", "tool_use_id": "nobody", "content": 4},
    {"type": "thinking", "thinking": "no signature"}, {"type": "image"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "blob:x"}},
    {"type": "compaction", "content": ""}, {"type": "compaction", "content": "c", "signature": "s"},
    {"type": "server_tool_use", "id": "lonely", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "nobody", "content": []},
    {"type": "text", "text": "m", "cache_control": {"type": "eternal"}},
    {"type": "text", "text": "m", "id": "x1"}, {"type": "text", "text": "m", "citations": [QUOTE]},
    {"type": "tool_use", "id": "ok", "name": "x", "input": {}, "index": 0}, IMAGE | {"alt": ""},
]  # fmt: skip


class Damage:
    """Breaks a list of messages in one of the ways in which rows and imports are broken."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def damage(self, messages: list[Message]) -> None:
        at = self.chance.randrange(len(messages))
        way = self.chance.choice([self._drop, self._garble, self._turn, self._swap, self._block])
        way(messages, at)

    def _drop(self, messages: list[Message], at: int) -> None:
        if len(messages) > 1:
            del messages[at]

    def _garble(self, messages: list[Message], at: int) -> None:
        one = messages[at]
        text = self.chance.choice(["", "[]", "{}", "[1,null]", "7", one.content[:-2], "[NaN]"])
        messages[at] = Message(one.seq, one.kind, text, one.tokens)

    def _turn(self, messages: list[Message], at: int) -> None:
        one = messages[at]
        kind = self.chance.choice(["prompt", "answer", "results"])
        messages[at] = Message(one.seq, kind, one.content, one.tokens)

    def _swap(self, messages: list[Message], at: int) -> None:
        other = self.chance.randrange(len(messages))
        one, two = messages[at], messages[other]
        messages[at] = Message(one.seq, two.kind, two.content, two.tokens)
        messages[other] = Message(two.seq, one.kind, one.content, one.tokens)

    def _block(self, messages: list[Message], at: int) -> None:
        one = messages[at]
        try:
            parts = wire.split(one.content)
        except Exception:
            return
        place = self.chance.randint(0, len(parts))
        put = [wire.encode(self.chance.choice(WRONG))] if self.chance.random() < 0.6 else []
        if not put and parts and self.chance.random() < 0.5:
            put = [self.chance.choice(parts)] * 2
        parts[place : place + self.chance.randint(0, 1)] = put
        messages[at] = Message(one.seq, one.kind, wire.join(parts), one.tokens)


@many
@given(seed=seeds)
def test_any_damage_is_mended_by_one_repair(seed: int) -> None:
    messages, damage = Maker(seed).conversation(), Damage(seed)
    for _ in range(damage.chance.choice([1, 1, 1, 2, 5])):
        damage.damage(messages)
    view = view_from(messages)
    change = repair_view(view, Policy())
    if change is None:
        rules.check_rules(view)
        return
    rules.check_rules(change.view_after)
    assert violations(change.view_after.body) == []
    assert repair_view(change.view_after, Policy()) is None
    assert change.note in NOTES.values()
    # What is recorded makes the same view again, and adds at most a result for each call.
    again = apply(view, "repair", load_edits(dump_edits(change.edits)))
    assert again.body == change.view_after.body
    calls = view.size // len('{"type":"tool_use","id":"x","name":"x","input":{}}') + 2
    assert change.view_after.size <= view.size + RESULT * calls


@many
@given(seed=seeds)
def test_a_legal_view_is_never_repaired(seed: int) -> None:
    assert repair_view(view_from(Maker(seed).conversation()), Policy()) is None


@many
@given(seed=seeds)
def test_a_conversation_that_was_repaired_needs_no_second_repair(seed: int) -> None:
    messages, damage = Maker(seed).conversation(), Damage(seed)
    damage.damage(messages)
    change = repair_view(view_from(messages), Policy())
    view = change.view_after if change else view_from(messages)
    for _ in range(3):
        seq = view.messages[-1].seq + 5
        last = view.messages[-1].kind
        for kind, part in (("answer", "Fine."), ("prompt", "And then?")):
            if last != "answer" or kind == "prompt":
                view = view.append(Message.parse(seq, kind, content([part])))  # type: ignore[arg-type]
                seq += 1
        # The pipeline leaves out before what no next message may follow.
        closed = leave_out_open_calls(view)
        view = closed.view_after if closed else view
        assert repair_view(view, Policy()) is None


def repaired(*said: Any) -> View:
    change = repair_view(view_of(*said), Policy())
    assert change is not None
    rules.check_rules(change.view_after)
    return change.view_after


def types(view: View) -> list[list[str]]:
    return [[block["type"] for block in blocks(view, at)] for at in range(view.length)]


def test_fields_that_the_api_does_not_accept_are_left_out_and_all_others_stay() -> None:
    cited, given = text("b") | {"citations": [QUOTE]}, {"caller": {"type": "direct"}}
    source = IMAGE["source"]
    view = repaired(
        prompt(text("a") | {"id": "x1"}, cited, IMAGE | {"source": source | {"name": "a.png"}}),
        answer(cited | {"parsed_output": None}, use("t1") | given | {"index": 0}),
        results(result("t1", [cited, IMAGE | {"alt": "a dot"}], status="done")),
        answer("c"),
        prompt("d"),
    )
    assert [blocks(view, at) for at in range(3)] == [
        [text("a"), text("b"), IMAGE],
        [cited, use("t1") | given],
        [result("t1", [text("b"), IMAGE])],
    ]


def test_files_that_the_api_refuses_are_left_out_before_they_are_sent() -> None:
    tall = base64.b64encode(small_files.png(100, 9_000)).decode()
    sources = [
        IMAGE["source"] | {"data": tall},
        IMAGE["source"] | {"media_type": "image/jpeg"},
        {"type": "base64", "media_type": "image/png"},
    ]
    wrong = [{"type": "image", "source": source} for source in sources]
    wrong += [{"type": "document", "source": IMAGE["source"]}]
    pdf = base64.b64encode(b"\n%PDF-1.7").decode()
    letter = {"type": "base64", "media_type": "application/pdf", "data": pdf}
    view = repaired(prompt("a", *wrong, IMAGE, {"type": "document", "source": letter}))
    kept = [block.get("text", block["type"]) for block in blocks(view, 0)]
    assert kept == ["a", *[NO_PART] * 4, "image", "document"]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    view = repaired(prompt("a"), answer(use("t1"), use("t2")), results(result("t2")), prompt("b"))
    found = blocks(view, 2)
    assert [block["tool_use_id"] for block in found] == ["t2", "t1"]
    assert "lost" in found[1]["content"]
    assert found[1]["is_error"] is True


def test_where_no_message_of_results_is_left_the_prompt_carries_the_result() -> None:
    view = repaired(prompt("a"), answer(use("t1")), prompt("b"))
    assert types(view) == [["text"], ["tool_use"], ["tool_result", "text"]]


def test_results_of_no_call_are_left_out() -> None:
    view = repaired(prompt("a"), answer("b"), results(result("t1")), prompt("c"))
    assert types(view) == [["text"], ["text"], ["text"]]


def test_of_two_results_of_one_call_the_first_stays() -> None:
    view = repaired(
        prompt("a"), answer(use("t1")), results(result("t1", "one"), result("t1", "two"))
    )
    assert [block["content"] for block in blocks(view, 2)] == ["one"]


def test_an_id_that_comes_twice_in_an_answer_is_renamed_with_its_result() -> None:
    view = repaired(
        prompt("a"), answer(use("t1"), use("t1")), results(result("t1", "x"), result("t1", "y"))
    )
    assert [block["id"] for block in blocks(view, 1)] == ["t1", "t1_2"]
    assert [(one["tool_use_id"], one["content"]) for one in blocks(view, 2)] == [
        ("t1", "x"), ("t1_2", "y")
    ]  # fmt: skip


def test_results_are_moved_before_what_else_is_said() -> None:
    view = repaired(prompt("a"), answer(use("t1")), results("late", result("t1")))
    assert types(view)[2] == ["tool_result", "text"]


def test_a_result_that_is_an_error_and_has_an_image_is_no_error_any_more() -> None:
    part: Part = result("t1", [IMAGE], is_error=True)
    view = repaired(prompt("a"), answer(use("t1")), results(part))
    assert blocks(view, 2) == [result("t1", [IMAGE])]


def test_a_prompt_of_which_nothing_is_left_says_so() -> None:
    broken = View().append(Message(1, "prompt", '["?', 5))
    change = repair_view(broken, Policy())
    assert change is not None
    assert "could not be sent" in change.view_after.body
    assert change.note == NOTES["prompt"]


def test_thinking_before_what_was_mended_stays_and_behind_it_goes() -> None:
    talk = [
        prompt("a"), answer(THOUGHT, "b"), prompt("c"),
        answer(THOUGHT, "d", {"type": "text", "text": ""}), prompt("e"), answer(THOUGHT, "f"),
        prompt("g"),
    ]  # fmt: skip
    assert types(repaired(*talk)) == [
        ["text"], ["thinking", "text"], ["text"], ["thinking", "text"], ["text"], ["text"], ["text"]
    ]  # fmt: skip


def test_a_rule_that_nothing_finer_obeys_costs_exchanges_and_then_all_but_the_last_prompt(
    monkeypatch: Any,
) -> None:
    talk = [part for n in range(40) for part in (prompt(f"q{n}"), answer(f"a{n}"))]
    view = view_of(*talk, prompt("last"))
    seen: list[int] = []

    def refuse(view: View) -> None:
        seen.append(view.length)
        if view.length > 1:
            raise RuleError("new", "messages.0", "no history any more")

    monkeypatch.setattr(rules, "check_rules", refuse)
    change = repair_view(view, Policy())
    assert change is not None
    assert change.view_after.body == '[{"role":"user","content":[{"type":"text","text":"last"}]}]'
    assert len(seen) <= MOST_ATTEMPTS + MOST_EXCHANGES + 1


def obeying(
    view: View,
    monkeypatch: Any,
    find: Callable[[View], RuleError | None],
    policy: Policy = Policy(),  # noqa: B008 - it is frozen
) -> View:
    """Return the view after a repair under a rule that no real one stands for."""

    def refuse(view: View) -> None:
        if (error := find(view)) is not None:
            raise error

    monkeypatch.setattr(rules, "check_rules", refuse)
    change = repair_view(view, policy)
    assert change is not None
    return change.view_after


def test_marks_beyond_what_is_allowed_are_taken_off() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    marked: Any = [{"type": "text", "text": "a"} | mark, {"type": "text", "text": "b"} | mark]
    found = result("t1", [{"type": "text", "text": "c"} | mark]) | mark
    view = repaired(
        prompt(*marked), answer(use("t1")), results(found, *marked), answer("d"), prompt(*marked)
    )
    assert "cache_control" not in view.body
    assert types(view)[0] == ["text", "text"]


def test_a_part_that_a_rule_names_is_left_out_and_a_prompt_of_it_alone_says_so(
    monkeypatch: Any,
) -> None:
    def find(view: View) -> RuleError | None:
        at = next((n for n in range(view.length) if "odd" in view.messages[n].content), None)
        return None if at is None else RuleError("new", f"messages.{at}.content.0", "is odd")

    talk = [prompt("odd"), answer("odd", "b"), prompt("c")]
    view = obeying(view_of(*talk), monkeypatch, find)
    assert [[block["text"] for block in blocks(view, at)] for at in range(3)] == [
        [NO_MESSAGE], ["b"], ["c"]
    ]  # fmt: skip


def test_a_rule_that_names_no_place_costs_everything_but_the_last_prompt(monkeypatch: Any) -> None:
    def find(view: View) -> RuleError | None:
        return RuleError("new", "messages", "is too much") if view.length > 1 else None

    view = obeying(view_of(prompt("a"), answer("b"), prompt("c")), monkeypatch, find)
    assert [block["text"] for block in blocks(view, view.length - 1)] == ["c"]


def test_a_rule_that_names_the_last_prompt_costs_what_is_before_it(monkeypatch: Any) -> None:
    def find(view: View) -> RuleError | None:
        sent = [message for message in view.messages if not message.is_empty]
        last = len(sent) - 1
        return RuleError("new", f"messages.{last}", "comes too late") if last > 2 else None

    talk = [prompt("a"), answer("b"), prompt("c"), answer("d"), prompt("e")]
    view = obeying(view_of(*talk), monkeypatch, find)
    assert "a" in view.body
    assert '"d"' not in view.body
    assert '"e"' in view.body


def test_the_words_of_a_malformed_compaction_stay() -> None:
    odd: Any = {"type": "compaction", "content": "What was said.", "cache_control": 1}
    view = view_of(prompt("a")).append(Message.parse(2, "answer", content([odd])))
    change = repair_view(view.append(Message.parse(3, "prompt", content(["c"]))), Policy())
    assert change is not None
    assert "What was said." in change.view_after.body


def test_half_a_surrogate_pair_is_replaced_and_the_words_around_it_stay() -> None:
    said = content(["whole 😀", "halfX"]).replace("X", "\\ud83d")
    view = View().append(Message.parse(1, "prompt", said))
    with pytest.raises(RuleError, match=r"messages\.0\.content\.1: .*surrogate pair"):
        rules.check_rules(view)
    change = repair_view(view, Policy())
    assert change is not None
    assert [part["text"] for part in blocks(change.view_after, 0)] == ["whole 😀", "half\ufffd"]
    assert repair_view(change.view_after, Policy()) is None


def test_the_pipeline_repairs_what_cannot_even_be_read() -> None:
    broken = view_of(prompt("a"), answer("b")).append(Message(3, "results", '["?', 5))
    view = broken.append(Message.parse(4, "prompt", content(["c"])))
    shell = Shell()
    shell.prepare(view, situation(), Policy())
    assert shell.kinds == ["repair applied"]


def test_the_pipeline_repairs_before_its_steps_and_says_why() -> None:
    shell = Shell(vetoes=("repair",))
    with pytest.raises(RuleError):
        shell.prepare(view_of(prompt("a"), answer(use("t1")), prompt("b")), situation(), Policy())
    shell = Shell()
    done = shell.prepare(
        view_of(prompt("a"), *round_of("t1", "x"), answer(use("t2")), prompt("b")),
        situation(), Policy(),
    )  # fmt: skip
    assert shell.kinds == ["repair applied"]
    assert "t2" in shell.records[0].reason
    assert shell.prepare(done.view, situation(), Policy()).view == done.view
    assert shell.kinds == ["repair applied"]
