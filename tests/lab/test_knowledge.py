"""What an agent knows in a replay: facts it made, originals it finds, and what asking costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conversations.agent.usage import Usage
from conversations.context.policy.policy import PRESETS
from conversations.context.view.view import Message
from conversations.lab.fact_search import FactSearch, Finding, read_index, write_query
from conversations.lab.facts import FactOutcome, FactScorer
from conversations.lab.own_facts import MOST, list_own_facts
from conversations.lab.recall_cost import CALL, SEARCHED, SHOWN, Recalls
from conversations.lab.records import Fact, Record
from conversations.lab.replayer import Replayer
from conversations.lab.report import simulate_record
from conversations.lab.simulated_tokenizer import build_tokenizer
from tests.lab.samples import (
    PAGE,
    PRICES,
    RECALL,
    answer,
    call,
    reading,
    record,
    result,
    user,
    world,
)


def write(id: str, path: str, content: str) -> dict[str, Any]:
    tool_input = {"path": path, "content": content}
    return {"type": "tool_use", "id": id, "name": "write_file", "input": tool_input}


def writing(rounds: int, last: str, page: str = PAGE) -> list[dict[str, Any]]:
    """Give a turn that writes a note, reads pages, and ends with these words."""
    found = reading(rounds, page)
    note = write(
        "toolu_n", "notes/plan_7.md", "Ask Ms Berg at berg@example.org about heron nests, HRN-4711."
    )
    found[1:1] = [answer("I note it.", note), user(result("toolu_n", "Written."))]
    found[-1] = answer(last)
    return found


def test_a_fact_the_agent_made_is_what_first_stood_in_its_own_call() -> None:
    one = record(writing(3, "See notes/plan_7.md; ask berg@example.org, not part0/page1.txt."))
    facts = {
        fact.text: (fact.first_seen, fact.used_at, fact.is_sole) for fact in list_own_facts(one)
    }
    assert facts == {
        "notes/plan_7.md": (1, 9, True),
        "berg@example.org": (1, 9, True),
        # Its call is at 5, four messages before.
        "part0/page1.txt": (5, 9, True),
    }


def test_a_fact_deep_in_an_input_has_an_original() -> None:
    path = "C:\\src\\main_7.py"
    edit = {"type": "tool_use", "id": "toolu_e", "name": "edit", "input": {"edits": [{"at": path}]}}
    messages = [user("Edit."), answer(edit), user(result("toolu_e", "ok")), *reading(1)]
    one = record([*messages, user("Which file?"), answer(f"It is {path} here.")])
    search = FactSearch(one)
    (fact,) = search.own_facts
    assert fact.text == path
    assert "toolu_e/input" in search.find(fact, fact.used_at).holding


def test_a_copy_in_between_makes_a_second_source() -> None:
    messages = writing(4, "See notes/plan_7.md.")
    messages[6] = user(result("toolu_0_1", "In notes/plan_7.md"))
    assert [fact.is_sole for fact in list_own_facts(record(messages))] == [False]


@pytest.mark.parametrize("place", ["prompt", "system", "longer"])
def test_what_stood_anywhere_before_is_not_the_agents_own(place: str) -> None:
    messages = writing(3, "See notes/plan_7.md.")
    fields = {"system": "Write to notes/plan_7.md"} if place == "system" else {}
    if place != "system":
        path = {"prompt": "notes/plan_7.md", "longer": "/home/ada/notes/plan_7.md.old"}[place]
        messages[0] = user(f"The file is {path}")
    assert list_own_facts(record(messages, **fields)) == ()


def test_at_most_so_many_are_taken() -> None:
    ids = " ".join(f"id-{number:05}" for number in range(MOST + 50))
    messages = [
        user("Go."),
        answer(write("toolu_1", "a", ids)),
        user(result("toolu_1", "Written.")),
    ]
    for step in range(2):
        messages += [answer(call(f"toolu_x{step}", "b")), user(result(f"toolu_x{step}", "x"))]
    assert len(list_own_facts(record([*messages, answer(ids)]))) == MOST


def answered(words: str) -> Message:
    return record([user("x"), answer(words)]).messages[1]


def find(one: Record, text: str) -> tuple[FactSearch, Fact]:
    last = len(one.messages) - 1
    return FactSearch(one), Fact(text, 0, last, is_sole=True)


def test_the_query_is_what_stands_around_the_fact() -> None:
    one = record([user("x"), answer("Ms Berg's address is berg@example.org, she counts herons.")])
    fact = Fact("berg@example.org", 0, 1, is_sole=True)
    assert write_query(one.messages[1], fact).split()[-4:] == [",", "she", "counts", "herons."]
    assert "berg@" not in write_query(one.messages[1], fact)
    long = f"Long ago {'the weather was fine ' * 9}at berg@example.org, {'I counted nests ' * 9}so"
    around = write_query(answered(long), fact).split()
    assert {around[0], around[-1]} <= {*long.split()}
    assert "Long" not in around
    assert write_query(one.messages[1], replace(fact, text="elsewhere")) == ""
    made = record([user("x"), answer(write("toolu_1", "a/b.md", "herons 7"))])
    assert write_query(made.messages[1], replace(fact, text="a/b.md")).split() == [
        "write_file", "herons", "7",
    ]  # fmt: skip


def test_a_fact_is_found_if_the_search_has_its_original_among_the_first() -> None:
    one = record(writing(12, "About the heron nests I ask berg@example.org."))
    search, fact = find(one, "berg@example.org")
    finding = search.find(fact, fact.used_at)
    assert (finding.found, finding.is_shown) == ("toolu_n/input", True)
    assert set(finding.holding) == {"toolu_n/input", "msg_2/input"}
    assert search.find(fact, 0) == finding
    messages = writing(12, "page 77 part0: berg@example.org")
    lost, fact = find(record(messages), "berg@example.org")
    assert lost.find(fact, fact.used_at).found == ""


def test_a_query_that_says_little_is_searched_beside_what_was_said_last() -> None:
    messages = [user("x")]
    for number in range(20):
        name, bird = f"toolu_{number}", "heron at berg@example.org" if number == 3 else "a lark"
        messages += [answer(call(name, "a.md")), user(result(name, f"The note is of {bird}."))]
    for said, found in ("The heron?", "toolu_3"), ("So?", ""):
        one = record([*messages, user(said), answer("Note berg@example.org")])
        search, fact = find(one, "berg@example.org")
        assert search.find(fact, fact.used_at).found == found


def test_originals_in_view_rank_after_those_that_are_not() -> None:
    messages = writing(12, "page 77 part0: berg@example.org")
    messages[1] = answer(write("toolu_n", "a.md", "page part0 of berg@example.org"))
    search, fact = find(record(messages), "berg@example.org")
    assert search.find(fact, fact.used_at).found == ""
    pages = frozenset(f"toolu_0_{number}" for number in range(12))
    shown = pages | {f"{page}/input" for page in pages}
    assert search.find(fact, fact.used_at, shown).found == "toolu_n/input"


def test_a_result_that_names_a_near_copy_leads_to_the_fact_in_it() -> None:
    page = " ".join(f"word{number}" for number in range(60))
    messages: list[dict[str, Any]] = [user("x")]
    for name, more in (("toolu_1", "berg@example.org"), ("toolu_2", "lark@example.net")):
        messages += [answer(call(name, "a.md")), user(result(name, f"heron {page} {more}"))]
    one = record([*messages, answer("Of the heron berg@example.org said word7.")])
    search, fact = find(one, "berg@example.org")
    finding = search.find(fact, fact.used_at)
    # The later of the two is listed, so the text shown is not the one with the fact.
    assert (finding.found, finding.is_shown) == ("toolu_1", False)


def outcomes(last: str, rounds: int = 60, policy: str = "structured") -> Any:
    """Play a long turn that needs its own note at the end; give the report and its calls."""
    one, steps = record(writing(rounds, last)), []
    chosen = replace(PRESETS[policy], input_token_budget=20_000, max_conversation_messages=40)
    made = world(policy=chosen, bills_recalls=True, tokenizer=build_tokenizer(len))
    return simulate_record(one, made, steps.append), steps


def test_what_the_agent_did_is_never_lost_and_asking_for_it_is_billed() -> None:
    report, steps = outcomes("About the heron nests I ask berg@example.org.")
    own = report.own
    assert (own.needed, own.in_view, own.lost) == (1, 0, 0)
    assert own.usable == own.found == own.recoverable == 1
    last = steps[-1].usage
    assert last is not None
    # The search shows the fact itself.
    expected = Usage(0, CALL, last.context, CALL + SEARCHED, 0)
    assert (report.recalls, report.recall_cost) == (1, PRICES.cost(expected))
    assert report.total_cost == report.cost + report.summary_cost + report.recall_cost


def test_three_calls_are_needed_if_nothing_leads_there_and_none_while_it_is_known() -> None:
    messages = writing(60, "Zebras: berg@example.org")
    again = [user("Go on."), answer("Zebras: HRN-4711")]
    one, steps = record([*messages, *again]), list[Any]()
    made = world(
        policy=replace(PRESETS["structured"], input_token_budget=20_000), bills_recalls=True
    )
    report = simulate_record(one, made, steps.append)
    assert (report.own.needed, report.own.usable, report.own.recoverable) == (2, 0, 2)
    assert report.recalls == 3


def test_what_recall_cannot_give_is_counted_as_lost() -> None:
    one, steps = record(writing(60, "About the heron nests I ask berg@example.org.")), list[Any]()
    policy = replace(PRESETS["structured"], input_token_budget=20_000)
    deaf = world(policy=policy, bills_recalls=True, recall_tools=())
    assert simulate_record(one, deaf).own.lost == 1
    assert simulate_record(one, replace(deaf, recall_tools=(RECALL,)), steps.append).own.lost == 0
    last, search = steps[-1], FactSearch(one)
    (fact,) = search.own_facts
    for unlogged, is_lost in (fact.first_seen, True), (fact.first_seen + 2, False):
        planted = replace(last, unlogged=frozenset({unlogged}))
        (found,) = FactScorer(one, search, with_own=True).score(planted)
        assert (found.in_view, found.is_recoverable) == (False, not is_lost)


def test_a_fact_that_no_original_has_is_lost_after_two_searches() -> None:
    needed = {"fact": "CODE-77-XY", "first_seen_message": 0, "used_at_message": 3}
    messages = [user("Read this."), answer("I see."), user("Which code?"), answer("CODE-77-XY")]
    report = simulate_record(record(messages, facts=[needed]), world(bills_recalls=True))
    assert (report.facts.needed, report.facts.lost, report.recalls) == (1, 1, 2)


def test_the_text_of_an_attached_document_is_read_and_can_be_recalled() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "The order is CODE-77-XY."}
    attached = user("Read this.", {"type": "document", "source": source, "title": "order_9.txt"})
    needed = {"fact": "CODE-77-XY", "first_seen_message": 0, "used_at_message": 3}
    messages = [attached, answer("I see."), user("Which code?"), answer("CODE-77-XY")]
    one = record(messages, facts=[needed])
    assert simulate_record(one, world(bills_recalls=True)).facts.in_view == 1
    search, fact = find(one, "CODE-77-XY")
    assert list(search.find(fact, fact.used_at).holding) == ["msg_1"]


def test_a_fact_behind_what_one_call_shows_costs_another_call() -> None:
    fact = Fact("berg@example.org", 0, 9, is_sole=True)
    text = "x" * (SHOWN + 10) + fact.text
    finding = Finding("herons", {"a": text}, "a", is_shown=False)
    recalls, step = Recalls(build_tokenizer(len)), outcomes("Nothing.", rounds=1)[1][-1]
    usages = list(recalls.list_usages(step, [FactOutcome(fact, told="a", finding=finding)]))
    assert [one.cache_write for one in usages] == [CALL + SHOWN, CALL + 10 + len(fact.text)]
    # All of it is known now, and is only carried along.
    (carried,) = recalls.list_usages(step, [FactOutcome(fact, told="a", finding=finding)])
    assert (carried.output, carried.cache_read) == (0, 2 * CALL + len(text))


def test_a_turn_that_ends_is_not_billed_for_recalls() -> None:
    one = record(writing(60, "I ask berg@example.org."))
    report = simulate_record(one, world("off", window=40_000, bills_recalls=True))
    assert report.ended
    assert (report.recalls, report.own.needed, report.own.lost) == (0, 1, 1)


def test_lines_of_a_request_tell_originals_apart_by_their_words() -> None:
    words = "read_file part0/page7.txt: the page about herons"
    index = f'Originals that can be read again:\n"msg_7": {words}\n"msg_9": other'
    shortened = result("toolu_7", 'Head of a list. [cut; recall "toolu_7" for the rest]')
    messages = [
        user(index),
        answer(call("toolu_7", "swallows.txt")),
        user(shortened),
        answer("So."),
    ]
    view = next(Replayer(record(messages), world("off")).steps()).seen
    for message in record(messages).messages[1:]:
        view = view.append(message)
    lines = read_index(view)
    assert lines.list_told("the herons of page7") == ["msg_7"]
    assert lines.list_told("swallows") == ["toolu_7"]
    assert len(PAGE) < SHOWN
