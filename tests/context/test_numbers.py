"""The gauge, the estimate, the policy and the envelope."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from typing import Any

import pytest

from conversations.context.policy.gauge import Report, measure_context
from conversations.context.policy.in_full import build_full_policy
from conversations.context.policy.policy import (
    PRESETS,
    PolicyError,
    build_policy,
    dump_policy,
)
from conversations.context.policy.preset_labels import PRESET_LABELS, check_labels
from conversations.context.policy.share import Share, parse_share
from conversations.context.tokens.estimate import IMAGE, PAGE, estimate_block, estimate_text
from conversations.context.view import wire
from conversations.context.view.envelope import build_envelope, join_body
from conversations.context.view.view import Message
from tests.context.samples import content, prompt, result, text, use, view_of


def test_the_figure_is_the_last_report_moved_by_the_estimated_difference() -> None:
    view = view_of(prompt("x" * 4_000))
    report = Report(2 * (view.tokens + 10), view.tokens, 10, 0)
    assert measure_context(view, 10, report, 200_000).tokens == report.tokens
    grown = view.append(Message.parse(2, "prompt", content(["y" * 4_000])))
    gauge = measure_context(grown, 10, report, 200_000)
    assert gauge.tokens == report.tokens + 2 * grown.messages[1].tokens
    assert (gauge.source, gauge.has_report) == ("reported", True)


def test_no_report_is_no_data_and_not_zero() -> None:
    view = view_of(prompt("hello"))
    gauge = measure_context(view, 100, None, 200_000)
    assert gauge.tokens == 100 + view.tokens
    assert (gauge.source, gauge.has_report) == ("estimated", False)


def test_after_a_transformation_the_figure_is_an_estimate_until_the_next_report() -> None:
    view = view_of(prompt("hello"))
    report = Report(100, view.tokens, 0, 0)
    assert measure_context(replace(view, edits=1), 0, report, 1_000).source == "estimated"


def test_a_threshold_fires_when_the_figure_is_greater_than_it() -> None:
    view = view_of(prompt("hello"))
    gauge = measure_context(view, 0, None, 200_000)
    assert gauge.passes(view.tokens, "n") is None
    assert gauge.passes(0, "n") is None
    found = gauge.passes(view.tokens - 1, "n")
    assert found is not None
    assert (found.number, found.threshold, found.setting) == (view.tokens, view.tokens - 1, "n")


def test_a_threshold_above_the_room_gives_way_to_it() -> None:
    view = view_of(prompt("hello " * 500))
    tight = measure_context(view, 0, None, 200_000, room=10)
    found = tight.passes_or_room(80_000, "n")
    assert found is not None
    assert (found.threshold, found.setting) == (10, "window_reserve_tokens")
    assert tight.passes_or_room(0, "n") is None
    assert tight.excess == tight.tokens - 10 + 1
    assert measure_context(view, 0, None, 200_000).excess == 0


def test_kinds_of_text_weigh_by_their_characters() -> None:
    assert estimate_text("") == 0
    assert estimate_text("a") == 1
    assert estimate_text("漢" * 100) == 100
    assert 15 <= estimate_text("plain words of english prose, nothing else in here at all") <= 30
    assert estimate_text("🎉" * 10) == 31


def picture(head: bytes) -> dict[str, Any]:
    data = base64.b64encode(head).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def test_an_image_weighs_by_its_pixels() -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 750, 100)
    gif = b"GIF89a" + struct.pack("<HH", 750, 100)
    jpeg = (
        b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 100, 750) + b"\x03"
    )
    assert {estimate_block(picture(head)) for head in (png, gif, jpeg)} == {104}
    huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 15_680, 15_680)
    assert estimate_block(picture(huge)) == 4 + 1568 * 1568 // 750
    unknown = [picture(b"BM"), picture(b"\xff\xd8\xff\xda\x00\x02aaaaaaaa"), {"type": "image"}]
    unknown.append({"type": "image", "source": {"type": "base64", "data": "é"}})
    unknown.append(picture(b"\xff\xd8\xff\xc4\x00\x02\xff"))
    assert [estimate_block(block) for block in unknown] == [4 + IMAGE] * 5


def test_a_document_weighs_by_its_pages_or_its_text() -> None:
    def document(source: object) -> int:
        return estimate_block({"type": "document", "source": source}) - 4

    pdf = base64.b64encode(b"/Type /Page x /Type /Page").decode()
    assert document({"type": "base64", "data": pdf}) == 2 * PAGE
    assert document({"type": "base64", "data": "é"}) == PAGE
    assert document({"type": "text", "data": "漢字"}) == 2
    assert document(None) == PAGE


def test_blocks_weigh_by_what_is_in_them() -> None:
    assert estimate_block(result("t", "漢字")) == 12 + 2
    assert estimate_block(result("t", [text("漢字")])) == 12 + 4 + 2
    assert estimate_block({"type": "thinking", "thinking": "漢字"}) == 4 + 2
    assert estimate_block(use("t", "n", a=[1, {"b": None}])) > 12
    assert estimate_block({"type": "search_result", "title": "x"}) > 4


def test_a_policy_is_a_preset_with_overrides_the_later_ones_winning() -> None:
    policy = build_policy("classic", {"input_token_budget": 1}, {"input_token_budget": 2})
    assert policy.input_token_budget == 2
    assert build_policy("rebuild", {"compaction_enabled": False}).compaction_enabled is False
    assert build_policy("classic", {"verbatim_tools": ["a"]}).verbatim_tools == ("a",)
    assert dump_policy(policy)["name"] == "classic"
    assert all(build_policy(name) == preset for name, preset in PRESETS.items())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("compaction_enabled", 1),
        ("verbatim_tools", "read_file"),
        ("verbatim_tools", [1]),
        ("name", "x"),
        ("input_token_budget", "1"),
        ("input_token_budget", True),
        ("input_token_budget", -1),
        ("input_token_budget", 80_000),
        ("max_tool_result_chars", 500),
    ],
)
def test_a_policy_is_validated_as_a_whole(field: str, value: object) -> None:
    with pytest.raises(PolicyError) as caught:
        build_policy("classic", {field: value})
    assert caught.value.code == "policy"


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(PolicyError):
        build_policy("nonsense")


def test_every_preset_has_its_own_words() -> None:
    labels = [words.label for words in PRESET_LABELS.values()]
    assert len(set(labels)) == len(labels)
    with pytest.raises(ValueError, match="piecemeal"):
        check_labels([*PRESETS, "piecemeal"])
    with pytest.raises(ValueError, match="off"):
        check_labels([name for name in PRESETS if name != "off"])


def test_a_body_is_the_envelope_with_the_messages_put_in() -> None:
    made = build_envelope(model="m", max_tokens=10, system="s", tools=[{"name": "t"}])
    assert join_body(made.text, "[]") == (
        '{"model":"m","max_tokens":10,"stream":true,'
        '"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],'
        '"tools":[{"name":"t"}],"cache_control":{"type":"ephemeral"},"messages":[]}'
    )
    assert made.with_limit(5).max_tokens == 5
    assert made.with_limit(5).binding == made.binding
    assert made.binding != build_envelope(model="m", max_tokens=10, system="").binding
    assert made.overhead > 0


def test_fewer_searches_are_offered_in_an_envelope_and_never_more() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    tools = [{"name": "read_file", "input_schema": {"type": "object"}}, search]
    made = build_envelope(model="m", max_tokens=9, system="s", tools=tools)
    fewer = made.with_searches(2)
    assert (made.searches, fewer.searches) == (5, 2)
    assert wire.decode(fewer.text)["tools"] == [tools[0], search | {"max_uses": 2}]
    # Thinking is signed over the tools: it is of another envelope, the same whenever it is made.
    assert fewer.binding not in (made.binding, made.with_searches(1).binding)
    assert fewer == made.with_searches(2)
    assert made.with_searches(7) == made.with_searches(5) == made


def test_a_threshold_can_be_a_share_of_the_window() -> None:
    given = {"keep_below_tokens": "60%", "low_water_tokens": " 5 % "}
    policy = build_policy("adaptive", given, window=1_000_000)
    assert (policy.keep_below_tokens, policy.low_water_tokens) == (600_000, 50_000)
    assert policy.promise(1_000_000) == 600_000
    assert (policy.share("keep_below_tokens"), policy.share("input_token_budget")) == (
        Share(60), None,
    )  # fmt: skip
    assert dump_policy(policy)["shares"] == {"keep_below_tokens": "60%", "low_water_tokens": "5%"}
    assert build_policy("adaptive", given).keep_below_tokens == 120_000
    assert build_policy("adaptive", given, window=20_000).low_water_tokens == 2_000
    later = build_policy("adaptive", given, {"keep_below_tokens": 70_000}, window=1_000_000)
    assert later.shares == (("low_water_tokens", 5),)
    assert later.promise(1_000_000) == 70_000
    assert "shares" not in dump_policy(PRESETS["adaptive"])


def test_a_number_that_is_changed_is_no_share_any_more() -> None:
    given = {"compaction_threshold_tokens": "40%", "window_reserve_tokens": "10%"}
    policy = build_full_policy(build_policy("rebuild", given))
    assert policy.shares == (("window_reserve_tokens", 10),)
    assert policy.window_reserve_tokens == 20_000


@pytest.mark.parametrize("value", ["0%", "101%", "60", "%", "6.5%", "-5%", 60, None])
def test_what_is_no_share_is_refused_by_its_field(value: Any) -> None:
    assert parse_share(value) is None
    if value != 60:
        with pytest.raises(PolicyError, match="input_token_budget: must be a whole number or a sh"):
            build_policy("classic", {"input_token_budget": value})


def test_shares_and_numbers_may_not_contradict_each_other_at_a_window() -> None:
    given = {"input_token_budget": 60_000, "compaction_threshold_tokens": "40%"}
    assert build_policy("classic", given).compaction_threshold_tokens == 80_000
    with pytest.raises(PolicyError, match="must be above input_token_budget"):
        build_policy("classic", given, window=100_000)
    settled = build_policy("classic", given, window=100_000, settles_shares=True)
    assert settled.compaction_threshold_tokens == 60_001
    assert (settled.input_token_budget, settled.shares) == (60_000, ())
    with pytest.raises(PolicyError, match=r"tool_result_retention_chars: must be a whole number$"):
        build_policy("classic", {"tool_result_retention_chars": "60%"})


@pytest.mark.parametrize("threshold", [80_000, "20%"])
def test_a_budget_that_is_a_share_yields_to_the_threshold(threshold: int | str) -> None:
    given = {"input_token_budget": "30%", "compaction_threshold_tokens": threshold}
    policy = build_policy("classic", given, window=400_000, settles_shares=True)
    assert (policy.input_token_budget, policy.compaction_threshold_tokens) == (79_999, 80_000)
    off = given | {"compaction_enabled": False}
    policy = build_policy("classic", off, window=400_000, settles_shares=True)
    assert (policy.input_token_budget, policy.share("input_token_budget")) == (120_000, Share(30))


def test_numbers_of_tokens_that_contradict_each_other_are_not_settled() -> None:
    given = {"input_token_budget": 90_000, "minimum_gain_tokens": "2%"}
    with pytest.raises(PolicyError, match="must be above input_token_budget"):
        build_policy("classic", given, settles_shares=True)
