"""Reviewers find the conversation that lost most, and see what it lost and whether it mattered."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.agent.answer import ToolUse
from conversations.agent.ports import ToolDone
from conversations.agent.usage import Usage
from conversations.budgets.usage.cells import format_dollars
from conversations.context.view import wire
from conversations.context.view.edits import SpliceBlocks, SpliceMessages
from conversations.context.view.view import Message, View
from conversations.log.path import fold_path, read_path
from conversations.models import ApiCall, Conversation, Transformation, Turn, User
from conversations.reductions.explanation import explain_change
from conversations.reductions.manual_changes import undo_change
from conversations.reductions.recalls import count_recalls
from conversations.reductions.reduction_page import read_reduction
from conversations.turns import tool_calls
from conversations.turns.versions import edit_prompt
from tests.support import people_and_turns, stored_turns
from tests.support.reduced_conversations import compact, now, talk, who
from tests.support.stored_turns import Played, played

pytestmark = pytest.mark.django_db
LIST = "admin:conversations_conversation_changelist"
#: Columns of the list by which reviewers order it, by their place.
FIGURES = {"spent": 4, "tokens_freed": 5, "reductions": 6, "rejected": 7, "recalls": 8}


def reviewer(*permissions: str) -> Client:
    user = User.objects.create(username="rita", is_staff=True)
    allowed = Permission.objects.filter(codename__startswith="view_")
    user.user_permissions.add(*allowed, *Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def read_again(place: Played, *asked: dict[str, str], turn: Turn | None = None) -> None:
    """Let the model call `recall` with these inputs in one more answer, or in this turn's."""
    if turn is None:
        lease = people_and_turns.next_turn(place.conversation)
    else:
        lease = people_and_turns.claimed(turn)
    uses = tuple(
        ToolUse(f"toolu_2{at}", "recall", wire.encode(given)) for at, given in enumerate(asked)
    )
    blocks = tuple(
        f'{{"type":"tool_use","id":"{use.id}","name":"recall","input":{use.input}}}' for use in uses
    )
    stored_turns.reply(lease, blocks, "tool_use", uses)
    for use in uses:
        tool_calls.start_tool(lease=lease, tool_use_id=use.id)
        tool_calls.finish_tool(lease=lease, tool_use_id=use.id, done=ToolDone('"it"', "ok", {}))


def compaction(place: Played) -> Transformation:
    return place.conversation.transformations.get(kind="compaction")


def list_rows(client: Client, query: str = "") -> list[dict[str, str]]:
    """Return the rows of the list as the texts of their cells, by the names of the columns."""
    text = client.get(reverse(LIST) + query).content.decode()
    rows = re.findall(r"<tr>(.*?)</tr>", text.partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r'class="field-(\w+)[^"]*">(.*?)</t[dh]>', row) for row in rows]
    return [{name: re.sub("<[^>]+>", "", cell) for name, cell in row} for row in cells]


def test_a_row_has_what_its_conversation_cost_and_lost() -> None:
    place = played()
    read_again(place, {"id": "toolu_1"})
    (row,) = list_rows(reviewer())
    costs = ApiCall.objects.values_list("result__cost_micros", flat=True)
    one = compaction(place)
    assert float(row["spent"].strip("$")) == pytest.approx(sum(costs) / 1e6, rel=0.05)
    assert row["tokens_freed"] == str(one.tokens_before - one.tokens_after)
    assert (row["reductions"], row["rejected"], row["recalls"]) == ("1", "1", "1")


def test_a_result_of_the_api_that_a_change_took_and_the_model_read_again_counts() -> None:
    place = played()
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    view = View().append(Message.parse(1, "answer", wire.encode([call, result])))
    read_again(place, {"id": "srvtoolu_1"}, {"id": "srvtoolu_1/input"}, {"id": "srvtoolu_2"})
    edits = (SpliceMessages(1, 1, ()),)
    assert count_recalls(place.conversation, compaction(place), view, edits) == 2


@pytest.mark.parametrize("column", FIGURES)
def test_the_list_is_ordered_by_each_figure(column: str) -> None:
    place = played()
    read_again(place, {"id": "toolu_1"})
    people_and_turns.queued(people_and_turns.person("bea"))
    client, at = reviewer(), FIGURES[column]
    for query, first in ((f"?o=-{at}", "ada"), (f"?o={at}", "bea")):
        assert next(row["person"] for row in list_rows(client, query)) == first


def test_the_filters_find_chats_by_group_and_by_their_policy() -> None:
    place = played()
    people_and_turns.queued(people_and_turns.person("bea"))
    group = Group.objects.create(name="Research")
    place.user.groups.add(group)
    Conversation.objects.filter(pk=place.conversation.pk).update(policy={"preset": "thrifty"})
    client = reviewer()
    for query, names in (
        (f"?group={group.pk}", ["ada"]), ("?policy=thrifty", ["ada"]),
        ("?policy=everywhere", ["bea"]), ("?policy=classic", []),
    ):  # fmt: skip
        assert [row["person"] for row in list_rows(client, query)] == names


def test_a_row_leads_to_the_inspector_where_it_opens() -> None:
    place = played()
    inspector = reverse("review_inspect", args=[place.conversation.public_id])
    figures = reverse("admin:conversations_conversation_change", args=[place.conversation.pk])
    client = reviewer()
    assert inspector not in client.get(reverse(LIST)).content.decode()
    reader = User.objects.get(username="rita")
    reader.user_permissions.add(Permission.objects.get(codename="read_content"))
    text = client.get(reverse(LIST)).content.decode()
    assert inspector in text
    assert text.count(figures) == 1


def test_one_reduction_is_one_screen_why_before_what_before_the_fields() -> None:
    place = played()
    read_again(place, {"id": "toolu_1"}, {"query": "order"})
    client = reviewer("read_content")
    row = compaction(place)
    url = reverse("admin:conversations_transformation_change", args=[row.pk])
    client.post(reverse("review_reason", args=[place.conversation.public_id]), {"reason": "x"})
    text = client.get(url).content.decode()
    shown = (
        row.note, "41,000 (estimated) &gt; 40,000", "Read again since", "What changed",
        "Read a file · notes.txt", "<del>", "<ins>", "All fields of the record", "Previous entry",
    )  # fmt: skip
    places = [text.lower().find(words.lower()) for words in shown]
    assert -1 not in places
    assert places == sorted(places)
    after = place.conversation.transformations.filter(seq__gt=row.seq).first()
    assert reverse("admin:conversations_transformation_change", args=[after.pk]) in text


def test_the_fields_are_open_where_the_content_is_closed() -> None:
    place = played()
    url = reverse("admin:conversations_transformation_change", args=[compaction(place).pk])
    text = reviewer().get(url).content.decode()
    assert '<details class="record-fields" open>' in text
    assert "41,000 (estimated) &gt; 40,000" in text
    assert "<del>" not in text
    assert "4711" not in text


def test_what_was_needed_again_is_counted_by_the_originals_that_were_taken() -> None:
    place = played()
    row = compaction(place)
    assert read_reduction(place.conversation, row.seq).recalls == 0
    results = place.conversation.messages.get(kind="results").seq
    read_again(
        place,
        {"id": "toolu_1"}, {"id": f"msg_{results}"}, {"id": "toolu_1/input"},
        {"id": "msg_1"}, {"id": "toolu_9"}, {"query": "the order"},
    )  # fmt: skip
    assert read_reduction(place.conversation, row.seq).recalls == 3


def test_a_search_or_the_first_message_is_nothing_that_a_summary_took() -> None:
    place = played()
    taken = place.conversation.messages.order_by("seq")[1].seq
    notice = SpliceBlocks(1, 1, 0, (wire.encode({"type": "text", "text": "They asked."}),))
    edits = (notice, SpliceMessages(taken, taken))
    view = fold_path(read_path(place.conversation))
    read_again(place, {"query": "order"}, {"id": "msg_1"}, {"id": f"msg_{taken}"}, {"id": ""})
    row = compaction(place)
    for kind, count in (("summary", 1), ("trim", 1), ("shrink", 2)):
        row.kind = kind
        assert count_recalls(place.conversation, row, view, edits) == count


def test_calls_that_were_read_from_the_cache_as_a_whole_count() -> None:
    place = played()
    lease = people_and_turns.next_turn(place.conversation)
    sent = people_and_turns.opened(lease)
    cached = people_and_turns.complete(usage=Usage(0, 50, 9_000, 0, 0))
    stored_turns.close(lease, sent.call, cached)
    found = explain_change(place.conversation, compaction(place))
    calls = ApiCall.objects.filter(purpose="reply", tip__gte=compaction(place).seq)
    assert found.calls_since == calls.count() == 2


def test_what_another_version_sent_and_read_again_does_not_count() -> None:
    place = played()
    row = compaction(place)
    before = read_reduction(place.conversation, row.seq)
    other = edit_prompt(turn=place.turn, text="Something else", client_id=uuid4())
    read_again(place, {"id": "toolu_1"}, turn=other)
    assert place.conversation.calls.filter(turn=other).exists()
    after = read_reduction(place.conversation, row.seq)
    assert (after.why, after.recalls) == (before.why, 0)
    assert before.why.calls_since == 1


def test_a_change_that_was_taken_back_has_saved_nothing_since() -> None:
    place = talk(played())
    row = compact(place)
    undo_change(**who(place), seq=row.seq)
    people_and_turns.answered(people_and_turns.next_turn(now(place)))
    found = explain_change(now(place), row)
    assert (found.is_taken_back, found.calls_since) == (True, 0)


def read_file(client: Client, name: str, query: str = "") -> Any:
    response = client.get(reverse(f"admin:{name}") + query)
    assert response.status_code == 200
    text = b"".join(response).decode("utf-8-sig")
    if name.endswith("jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text)))


def test_the_lists_go_out_as_csv_and_json_lines() -> None:
    place, client = played(), reviewer()
    read_again(place, {"id": "toolu_1"})
    one = compaction(place)
    changes = read_file(client, "transformations_jsonl")
    assert [row["entry"] for row in changes] == [one.seq + 1, one.seq]
    assert changes[1]["tokens_before"] == one.tokens_before
    assert changes[1]["policy"] == json.loads(one.policy)["name"]
    assert changes[0]["summary_dollars"] == format_dollars(cost_of_summary())
    calls = read_file(client, "calls_csv")
    assert [int(row["call"]) for row in calls] == [
        *ApiCall.objects.order_by("-pk").values_list("pk", flat=True)
    ]
    assert {row["status"] for row in calls} == {"complete"}
    (talk,) = read_file(client, "conversations_jsonl")
    assert (talk["user"], talk["reductions"], talk["recalls"]) == ("ada", 1, 1)
    assert len(read_file(client, "transformations_csv", "?outcome__exact=applied")) == 1
    for name in ("transformations", "calls", "conversations"):
        cells, objects = read_file(client, f"{name}_csv"), read_file(client, f"{name}_jsonl")
        assert [[*row] for row in cells] == [[*row] for row in objects]


def cost_of_summary() -> int:
    return int(ApiCall.objects.get(purpose="summary").result.cost_micros)


def test_a_call_in_doubt_goes_out_without_figures() -> None:
    place = played()
    people_and_turns.opened(people_and_turns.next_turn(place.conversation))
    newest = read_file(reviewer(), "calls_jsonl")[0]
    assert newest["status"] == "in doubt"
    assert newest["cost_dollars"] is None


def test_a_file_costs_the_same_however_many_conversations_it_has() -> None:
    client, counts = reviewer(), []
    for name in ("ada", "bea", "cleo"):
        played(name)
        with CaptureQueriesContext(connection) as queries:
            for word in ("transformations", "calls", "conversations"):
                read_file(client, f"{word}_csv")
        counts.append(len(queries))
    assert counts[0] == counts[1] == counts[2]
